"""A whole conversation with the ACPAgent of OpenHands' SDK, as it is published: conversation.py CWD COMMAND ARGS…"""

from __future__ import annotations

import asyncio
import sys
import uuid
from pathlib import Path
from typing import Any

from openhands.sdk import Conversation  # type: ignore[import-not-found]
from openhands.sdk.agent import ACPAgent  # type: ignore[import-not-found]

cwd, command = Path(sys.argv[1]), sys.argv[2:]
events: list[Any] = []


def done(step: str) -> None:
    print(f"done: {step}", flush=True)


def opened(name: uuid.UUID, tokens: asyncio.Event) -> Any:
    loop = asyncio.get_running_loop()

    def token(_: Any) -> None:
        loop.call_soon_threadsafe(tokens.set)

    return Conversation(
        agent=ACPAgent(acp_command=command),
        workspace=str(cwd / "work"),
        persistence_dir=str(cwd / "kept"),
        conversation_id=name,
        callbacks=[events.append],
        token_callbacks=[token],
        visualizer=None,
    )


async def say(conversation: Any, text: str) -> str:
    """What was added to the conversation, after the words of the user."""
    conversation.send_message(text)
    before = len(events)
    await conversation.arun()
    return " ".join(event.model_dump_json() for event in events[before:])


async def main() -> None:
    name, tokens = uuid.uuid4(), asyncio.Event()
    first = opened(name, tokens)
    assert "remember the hands" in await say(first, "remember the hands")
    done("prompt")
    assert "The tool ran." in await say(first, "tool ls")
    done("permission")
    tokens.clear()
    turn = asyncio.create_task(say(first, "slow 200"))
    await tokens.wait()
    first.interrupt()
    await turn
    done("cancel")  # of what it has not heard the end of it says all again, before it goes on
    assert "1. remember the hands" in await say(first, "recall")
    done("prompt after cancel")
    first.close()

    second = opened(name, tokens)
    assert "1. remember the hands" in await say(second, "recall")
    done("session/load")
    second.close()


asyncio.run(main())
