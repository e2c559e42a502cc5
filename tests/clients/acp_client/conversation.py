"""A whole conversation with acp-client, as it is published: conversation.py CWD COMMAND ARGS…"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from acp_client import Agent  # type: ignore[import-not-found]

cwd, command = Path(sys.argv[1]), sys.argv[2:]
asked: list[str] = []


async def allow(request: dict[str, Any]) -> str:
    asked.append(request["toolCall"]["toolCallId"])
    return str(next(option["optionId"] for option in request["options"] if option["kind"] == "allow_once"))


def done(step: str) -> None:
    print(f"done: {step}", flush=True)


async def main() -> None:
    first = Agent(command, cwd, permission=allow)
    await first.start()
    done("session/new")
    assert await first.ask("remember the client") == "remember the client"
    done("prompt")
    assert "The tool ran." in await first.ask("tool ls")
    assert len(asked) == 1
    done("permission")
    growing = asyncio.Event()
    turn = asyncio.create_task(first.ask("slow 1000", on_text=lambda _: growing.set()))
    await growing.wait()
    first.cancel()
    assert "tick 1" in await turn
    done("cancel")
    assert "remember the client" in await first.ask("recall")
    done("prompt after cancel")
    session = first.session
    await first.stop()

    told: list[str] = []
    second = Agent(command, cwd, permission=allow, session=session)
    await second.start(on_update=lambda update: told.append(update["sessionUpdate"]))
    assert second.session == session
    assert "user_message_chunk" in told
    assert "agent_message_chunk" in told
    done("session/load")
    assert "remember the client" in await second.ask("recall")
    assert "The tool ran." in await second.ask("tool pwd")
    assert len(asked) == 2
    done("permission after load")
    await second.stop()


asyncio.run(main())
