"""What OpenCode's server has and this one has not, with the reason that a client is told."""

from __future__ import annotations

_CREDENTIALS = "agents have their own credentials: set them in the environment of the server, or log in with the agent"
_CONFIG = "the configuration of OpenCode is not used here: see `sandbox-agent server --help`"
_CONSOLE = "there is no OpenCode Console behind this server"
_COPIES = "work trees and copies of projects are not made here"
_MCP = "MCP servers belong to a session and its agent, and are given when it is created"
_COMPACT = "use POST /session/{sessionID}/summarize"
_DURABLE = "the second API's event log is not kept: follow GET /event, and read messages for what was missed"
_ASKING = "permissions are asked by agents"
_WAIT = "wait for the event `session.idle` of GET /event"
_CONTEXT = "what an agent has in its context is known to it alone: read the messages"
_SHARE = "sessions are not published: read a transcript with GET /v1/sessions/{id}/transcript"
_SYNC = "sessions are not copied between servers"
_MESSAGES = "history cannot be changed: it is what agent and user have said"
_SHELL = "a session is what user and agent say over ACP, which has no message for a command of the user: use /pty"
_TUI_CONTROL = "requests to terminal UIs are sent as events, and have no answer"
_UPGRADE = "upgrade the server as it was installed"
_VCS = "version control is left to the agents"
_WORKSPACES = "workspaces of OpenCode are not kept here: a session has a directory"
_UNDO = "undo a turn with POST /session/{sessionID}/revert"

NOT_SERVED: dict[str, str] = {
    "PUT /auth/{providerID}": _CREDENTIALS,
    "DELETE /auth/{providerID}": _CREDENTIALS,
    "POST /provider/{providerID}/oauth/authorize": _CREDENTIALS,
    "POST /provider/{providerID}/oauth/callback": _CREDENTIALS,
    "GET /api/integration/{integrationID}": _CREDENTIALS,
    "POST /api/integration/{integrationID}/connect/key": _CREDENTIALS,
    "POST /api/integration/{integrationID}/connect/oauth": _CREDENTIALS,
    "GET /api/integration/attempt/{attemptID}": _CREDENTIALS,
    "DELETE /api/integration/attempt/{attemptID}": _CREDENTIALS,
    "POST /api/integration/attempt/{attemptID}/complete": _CREDENTIALS,
    "PATCH /api/credential/{credentialID}": _CREDENTIALS,
    "DELETE /api/credential/{credentialID}": _CREDENTIALS,
    "PATCH /config": _CONFIG,
    "PATCH /global/config": _CONFIG,
    "DELETE /api/permission/saved/{id}": _CONFIG,
    "POST /global/upgrade": _UPGRADE,
    "GET /experimental/console/orgs": _CONSOLE,
    "POST /experimental/console/switch": _CONSOLE,
    "POST /experimental/control-plane/move-session": _SYNC,
    "POST /experimental/worktree": _COPIES,
    "DELETE /experimental/worktree": _COPIES,
    "POST /experimental/worktree/reset": _COPIES,
    "POST /experimental/project/{projectID}/copy": _COPIES,
    "DELETE /experimental/project/{projectID}/copy": _COPIES,
    "POST /experimental/project/{projectID}/copy/refresh": _COPIES,
    "POST /experimental/project/{projectID}/copy/generate-name": _COPIES,
    "PATCH /project/{projectID}": _COPIES,
    "POST /project/git/init": _VCS,
    "GET /vcs/diff/raw": _VCS,
    "POST /vcs/apply": _VCS,
    "POST /experimental/session/{sessionID}/background": "agents have no background tasks that ACP tells of",
    "POST /mcp": _MCP,
    "POST /mcp/{name}/auth": _MCP,
    "DELETE /mcp/{name}/auth": _MCP,
    "POST /mcp/{name}/auth/callback": _MCP,
    "POST /mcp/{name}/auth/authenticate": _MCP,
    "POST /mcp/{name}/connect": _MCP,
    "POST /mcp/{name}/disconnect": _MCP,
    "POST /session/{sessionID}/share": _SHARE,
    "DELETE /session/{sessionID}/share": _SHARE,
    "POST /session/{sessionID}/shell": _SHELL,
    "DELETE /session/{sessionID}/message/{messageID}": _MESSAGES,
    "DELETE /session/{sessionID}/message/{messageID}/part/{partID}": _MESSAGES,
    "PATCH /session/{sessionID}/message/{messageID}/part/{partID}": _MESSAGES,
    "POST /sync/start": _SYNC,
    "POST /sync/replay": _SYNC,
    "POST /sync/steal": _SYNC,
    "POST /sync/history": _SYNC,
    "GET /tui/control/next": _TUI_CONTROL,
    "POST /tui/control/response": _TUI_CONTROL,
    "GET /experimental/workspace/adapter": _WORKSPACES,
    "POST /experimental/workspace": _WORKSPACES,
    "POST /experimental/workspace/sync-list": _WORKSPACES,
    "DELETE /experimental/workspace/{id}": _WORKSPACES,
    "POST /experimental/workspace/warp": _WORKSPACES,
    "POST /api/session/{sessionID}/compact": _COMPACT,
    "POST /api/session/{sessionID}/wait": _WAIT,
    "POST /api/session/{sessionID}/revert/stage": _UNDO,
    "POST /api/session/{sessionID}/revert/clear": _UNDO,
    "POST /api/session/{sessionID}/revert/commit": _UNDO,
    "GET /api/session/{sessionID}/context": _CONTEXT,
    "GET /api/session/{sessionID}/history": _DURABLE,
    "GET /api/session/{sessionID}/event": _DURABLE,
    "POST /api/session/{sessionID}/permission": _ASKING,
    "GET /api/event": _DURABLE,
    "GET /api/fs/read/*": "read files with /file/content",
    "GET /api/fs/list": "list files with /file",
}
"""By method and path, as OpenCode's OpenAPI document names them."""
