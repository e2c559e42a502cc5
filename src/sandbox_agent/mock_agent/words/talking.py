"""Words that only tell the client something."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from sandbox_agent.mock_agent.turn import Misuse, Turn
from sandbox_agent.mock_agent.wire import encode
from sandbox_agent.mock_agent.words.asking import run_edit, run_tool
from sandbox_agent.mock_agent.words.table import WORDS, word

_PACE = 0.04
_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_STEPS = (("Look around", "high"), ("Make the change", "medium"), ("Check the result", "low"))


async def echo(turn: Turn, text: str) -> None:
    """Answer plain text with itself, in several chunks."""
    others = [block for block in turn.blocks if block["type"] != "text"]
    answer = " ".join([text, *(f"[{block['type']}]" for block in others)]) if others else text
    third = max(1, -(-len(answer) // 3))
    for start in range(0, len(answer), third):
        turn.say(answer[start : start + third])
    if not answer:
        turn.say("(nothing was said)")


@word("thought [TEXT]", "thinks aloud (`agent_thought_chunk`), then says `done`")
async def think(turn: Turn, rest: str) -> None:
    turn.think(rest or "Let me think about that.")
    turn.say("done")


@word("plan", "sends a plan of three entries, and again with the first two steps done")
async def plan(turn: Turn, rest: str) -> None:
    turn.update(_plan_update(0))
    turn.update(_plan_update(2))


@word("usage", "sends `usage_update` (tokens used, size of the window, cost)")
async def usage(turn: Turn, rest: str) -> None:
    turn.tell(_usage_update(turn))


@word("image", "sends an image, a PNG of one pixel, as a message chunk")
async def image(turn: Turn, rest: str) -> None:
    turn.say_block({"type": "image", "mimeType": "image/png", "data": _PIXEL})


@word("recall", "says all earlier prompts of the session, numbered, one a line")
async def recall(turn: Turn, rest: str) -> None:
    earlier = turn.session.prompts[:-1]
    turn.say("\n".join(f"{index}. {prompt}" for index, prompt in enumerate(earlier, 1)) or "(no earlier prompts)")


@word("env NAME", "says `NAME=value`, or that NAME is not set in the agent's environment")
async def env(turn: Turn, rest: str) -> None:
    if not rest:
        raise Misuse("NAME is missing")
    value = os.environ.get(rest)
    turn.say(f"{rest} is not set" if value is None else f"{rest}={value}")


@word("cwd", "says the session's working directory and the process's")
async def cwd(turn: Turn, rest: str) -> None:
    turn.say(f"session: {turn.session.cwd}\nprocess: {os.getcwd()}")  # noqa: PTH109 (as the system spells it)


@word("client", "says as JSON how the client introduced itself in `initialize`: name and capabilities")
async def describe_client(turn: Turn, rest: str) -> None:
    turn.say(encode(turn.client.introduced).decode())


@word("demo", "the grand tour, paced for people: text, thought, plan, tool call and edit with permission, usage")
async def demo(turn: Turn, rest: str) -> None:
    await _say_slowly(turn, "Hello! I am the built-in agent, and this is what a turn looks like. ")
    turn.think("First I make a plan, then I ask before I touch anything.")
    await asyncio.sleep(_PACE)
    turn.update(_plan_update(0))
    await _say_slowly(turn, "I would like to run a command. ")
    turn.update(_plan_update(1))
    await run_tool(turn, "ls")
    await asyncio.sleep(_PACE)
    await run_edit(turn, "notes.txt")
    turn.update(_plan_update(3))
    turn.tell(_usage_update(turn))
    await _say_slowly(turn, "\nThat was all: text, a thought, a plan, a tool call and an edit. ")


@word("help", "says which words there are")
async def list_words(turn: Turn, rest: str) -> None:
    turn.say("\n".join(f"{entry.usage}: {entry.says}" for entry in WORDS.values()))


async def _say_slowly(turn: Turn, text: str) -> None:
    words = text.split(" ")
    for index in range(0, len(words), 3):
        turn.say(" ".join(words[index : index + 3]) + (" " if index + 3 < len(words) else ""))
        await asyncio.sleep(_PACE)


def _plan_update(done: int) -> dict[str, Any]:
    def status(index: int) -> str:
        return "completed" if index < done else "in_progress" if index == done else "pending"

    entries = [
        {"content": content, "priority": priority, "status": status(index)}
        for index, (content, priority) in enumerate(_STEPS)
    ]
    return {"sessionUpdate": "plan", "entries": entries}


def _usage_update(turn: Turn) -> dict[str, Any]:
    used = 1000 + sum(len(prompt) for prompt in turn.session.prompts)
    cost = {"amount": round(used * 0.00001, 5), "currency": "USD"}
    return {"sessionUpdate": "usage_update", "used": used, "size": 200_000, "cost": cost}
