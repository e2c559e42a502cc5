"""What the OpenAPI document shows as examples, by the name of the operation."""

from __future__ import annotations

from typing import Any

from sandbox_agent.version import __version__

_AGENT: dict[str, Any] = {
    "id": "mock",
    "name": "Mock",
    "support": "supported",
    "installed": True,
    "version": "1.0.0",
    "path": "/usr/bin/python3",
    "source": "builtin",
    "verified": True,
    "credentialsAvailable": True,
    "instructions": "comes with the server",
    "runtime": None,
    "artifacts": [],
    "isolation": "process",
    "capabilities": {"loadSession": True},
    "serverStatus": {
        "status": "running",
        "uptimeMs": 12000,
        "restartCount": 0,
        "lastError": None,
        "pid": 4711,
        "sessions": 2,
        "processes": [{"pid": 4711, "session": None, "uptimeMs": 12000}],
    },
    "models": [{"id": "mock-large", "name": "Large"}],
    "modes": [{"id": "ask", "name": "Ask"}],
    "configOptions": [],
    "configError": None,
}
_SESSION: dict[str, Any] = {
    "sessionId": "mock-5a0c",
    "agent": "mock",
    "alias": "my-session",
    "title": "Fix the tests",
    "firstPrompt": "The tests are flaky: find out why",
    "lastError": None,
    "cwd": "/work/project",
    "mode": "ask",
    "model": "mock-large",
    "createdAt": "2026-01-31T12:00:00.000Z",
    "updatedAt": "2026-01-31T12:05:00.000Z",
    "ended": False,
    "endedAt": None,
    "endedReason": None,
    "eventCount": 42,
    "nativeSessionId": "mock-5a0c",
    "additionalDirectories": ["/work/shared"],
    "permissionMode": "ask",
    "mcp": {"files": {"type": "stdio", "command": "mcp-files", "args": ["--root", "/work"], "env": {}}},
    "skills": None,
    "metadata": {},
}
_STAT = {"path": "/work/a.txt", "entryType": "file", "size": 5, "modified": "2026-01-31T12:00:00.000Z"}
_MOVED = {"from": "/work/a.txt", "to": "/work/b.txt"}
_STORE = {
    "kind": "sqlite",
    "state": "ok",
    "pendingBytes": 0,
    "lostEntries": 0,
    "problem": None,
    "path": "/home/me/.local/share/sandbox-agent/history.db",
    "damaged": 0,
    "setAside": [],
}
_PERMISSION = {
    "requestId": 7,
    "method": "session/request_permission",
    "params": {"sessionId": "mock-5a0c", "toolCall": {"toolCallId": "1"}, "options": []},
}
_CONNECTION = {
    "connectionId": "conn_k3yX",
    "clientInfo": {"name": "inspector"},
    "createdAt": "2026-01-31T12:00:00.000Z",
    "isStreaming": True,
    "lastEventId": 42,
}

RESPONSES: dict[str, Any] = {
    "showHealth": {
        "status": "ok",
        "version": __version__,
        "uptimeMs": 86400000,
        "store": _STORE,
        "agentsRunning": ["mock"],
        "connections": 1,
    },
    "issueTicket": {"ticket": "pZ1yq0V0c7", "expiresAt": "2026-01-31T12:00:30.000Z"},
    "listAgents": {"agents": [_AGENT]},
    "showAgent": _AGENT,
    "readAgentLogs": {"agent": "mock", "status": "running", "lines": ["ready"], "totalLines": 1},
    "installAgent": {
        "already_installed": True,
        "alreadyInstalled": True,
        "artifacts": [],
        "version": "1.0.0",
        "source": "builtin",
    },
    "searchSessions": {
        "sessions": [
            {
                "session": _SESSION,
                "hits": [
                    {
                        "sequence": 17,
                        "time": "2026-01-31T12:01:00.000Z",
                        "kind": "message",
                        "snippet": [
                            {"text": "The "},
                            {"text": "flaky", "isMatch": True},
                            {"text": " test waits for a port …"},
                        ],
                    }
                ],
                "moreHits": 0,
            }
        ],
        "isComplete": True,
    },
    "listSessions": {"sessions": [_SESSION], "nextCursor": None, "unreadable": []},
    "showSession": {
        **_SESSION,
        "lastActivityAt": "2026-01-31T12:05:00.000Z",
        "isLive": True,
        "isBusy": True,
        "queuedPrompts": 0,
        "pendingPermissions": [_PERMISSION],
        "pendingQuestions": [],
        "attachedConnections": [_CONNECTION],
        "modes": [{"id": "ask", "name": "Ask"}],
        "models": [{"id": "mock-large", "name": "Large"}],
        "configOptions": [],
    },
    "listEntries": [{"name": "a.txt", **_STAT}],
    "statEntry": _STAT,
    "writeFile": {"path": "/work/a.txt", "bytesWritten": 5},
    "deleteEntry": {"path": "/work/a.txt"},
    "makeDirectory": {"path": "/work/src"},
    "moveEntry": _MOVED,
    "uploadBatch": {"paths": ["/work/src/main.py"], "truncated": False},
}
BODIES: dict[str, Any] = {"installAgent": {"reinstall": False}, "moveEntry": {**_MOVED, "overwrite": True}}
