"""A server with the built-in agent, and sessions that another client fills with updates."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bench.servers import Conversation, Ours

NEEDLE = "needle-in-the-haystack"
_UPDATES = 200
_MARKDOWN = """Here is **what changed** and `why`:

1. The reader keeps its place.
2. A cut in the [stream](https://example.invalid/) is bridged.

| file | lines |
|---|---:|
| `stream.ts` | 120 |

```python
def follow(after):
    return [event for event in journal if event.id > after]
```
"""


class MockServer(Ours):
    """Without a token: on loopback, and a browser that is not signed in shall see the page."""

    def command(self) -> list[str]:
        program = Path(sys.executable).parent / "sandbox-agent"
        return [str(program), "server", "--port", str(self.port)]

    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "SANDBOX_AGENT_DATA_DIR": str(self.folder / "data"),
            "SANDBOX_AGENT_MOCK_STATE": str(self.folder / "mock"),
        }

    @property
    def auth(self) -> dict[str, str]:
        return {}

    def connect(self) -> tuple[tuple[str, str], ...]:
        meta = {"sandboxagent.dev": {"agent": "mock"}}
        _, found = self.rpc("/v1/rpc", "initialize", {"protocolVersion": 1, "_meta": meta}, {})
        return (("x-acp-connection-id", found["x-acp-connection-id"]),)

    def converse(self, headers: tuple[tuple[str, str], ...] = ()) -> Conversation:
        headers = headers or self.connect()
        params = {"cwd": "/tmp", "mcpServers": [], "_meta": {"sandboxagent.dev": {"permissionMode": "allow"}}}
        result, _ = self.rpc("/v1/rpc", "session/new", params, dict(headers))
        return Conversation("/v1/rpc", headers, result["sessionId"])

    def say(self, conversation: Conversation, text: str) -> None:
        """One turn, to its end."""
        prompt = [{"type": "text", "text": text}]
        params = {"sessionId": conversation.session, "prompt": prompt}
        self.rpc("/v1/rpc", "session/prompt", params, dict(conversation.headers))


def fill(server: MockServer, conversation: Conversation, updates: int, shape: str) -> None:
    """At least so many updates, as fast as the server takes them; the last message says that it is over."""
    half = updates // (2 * _UPDATES)
    if shape == "answer":
        server.say(conversation, f"chunks {updates // 2} 60; thought {NEEDLE}; chunks {updates // 2} 60")
    else:
        for turn in range(updates // _UPDATES):
            if turn == half:
                server.say(conversation, NEEDLE)
            server.say(conversation, _turn(turn))
            server.say(conversation, f"Part {turn}\n\n{_MARKDOWN}")
    server.say(conversation, last_words(updates))


def last_words(updates: int) -> str:
    return f"That were {updates} updates"


def _turn(turn: int) -> str:
    return f"thought About part {turn}; plan; tool ls part-{turn}; chunks {_UPDATES - 12} 60"
