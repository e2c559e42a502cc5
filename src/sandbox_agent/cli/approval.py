"""Who answers what an agent asks: the person at the keyboard, or a rule given on the command line."""

from __future__ import annotations

import asyncio
from typing import Literal

from rich.console import Console
from rich.text import Text

from sandbox_agent.cli.keyboard import can_ask, read_line
from sandbox_agent.cli.rendering import View
from sandbox_agent.client.asking import Answer, Outcome, PermissionRequest, QuestionRequest

Approve = Literal["ask", "allow", "reject"]
_LETTERS = {"allow_once": "y", "allow_always": "a", "reject_once": "n", "reject_always": "r"}


class Approval:
    """Handlers for the SDK. One question is on the screen at a time."""

    def __init__(self, approve: Approve, console: Console, view: View, *, leaves_unasked: bool = False) -> None:
        """`leaves_unasked`: where nobody can be asked here, others may answer."""
        self._leaves_unasked = leaves_unasked
        self._approve = approve
        self._console = console
        self._view = view
        self.is_asking = False
        self.was_unasked = False
        """Whether a permission was rejected for want of somebody to ask."""
        self._asking = asyncio.Lock()  # the peer here is the person: questions stand in line for the screen

    async def permission(self, request: PermissionRequest) -> Answer:
        if self._approve == "allow":
            self._view.note(f"  permission: {request.title} → allowed", "yellow")
            return request.allow()
        if self._leaves_unasked and not can_ask():
            return None
        if self._approve == "reject" or not can_ask():
            self.was_unasked = self.was_unasked or self._approve == "ask"
            why = "" if self._approve == "reject" else " (no terminal to ask at; see --approve)"
            self._view.note(f"  permission: {request.title} → rejected{why}", "yellow")
            return request.reject()
        async with self._asking:
            return await self._ask_permission(request)

    async def question(self, request: QuestionRequest) -> Answer:
        if self._leaves_unasked and not can_ask():
            return None
        if not can_ask():
            self._view.note(f"  question: {request.prompt} → rejected (no terminal to ask at)", "yellow")
            return request.reject()
        async with self._asking:
            return await self._ask_question(request)

    async def _ask_permission(self, request: PermissionRequest) -> Outcome:
        self._view.pause()
        keys = _keys(request)
        self._console.print(Text.assemble(("? ", "bold yellow"), "Allow ", (request.title, "bold")))
        for key, (_, name) in keys.items():
            self._console.print(Text.assemble("  ", (f"[{key}]", "bold yellow"), f" {name}"))
        chosen = await self._choose(list(keys))
        if chosen is None:
            return request.reject()
        self._console.print(Text(f"  → {keys[chosen][1]}", style="yellow"))
        return request.select(keys[chosen][0])

    async def _ask_question(self, request: QuestionRequest) -> Outcome:
        self._view.pause()
        self._console.print(Text.assemble(("? ", "bold yellow"), (request.prompt, "bold")))
        for number, (_, label) in enumerate(request.options, 1):
            self._console.print(Text.assemble("  ", (f"[{number}]", "bold yellow"), f" {label}"))
        numbered = "numbers, separated by spaces" if request.is_multiple else "number"
        hint = numbered if request.options else "your answer"
        while True:
            typed = await self._typed(f"{hint}, or Enter to decline: ")
            if not typed:
                return request.reject()
            if not request.options:
                return request.answer(typed)
            numbers = [int(word) for word in typed.replace(",", " ").split() if word.isdigit()]
            chosen = [request.options[n - 1][0] for n in numbers if 1 <= n <= len(request.options)]
            if chosen and (request.is_multiple or len(chosen) == 1):
                return request.answer(*chosen)

    async def _typed(self, hint: str) -> str | None:
        self._console.print(Text(f"  {hint}", style="yellow"), end="")
        self._console.file.flush()
        self.is_asking = True
        try:
            return await read_line()
        except asyncio.CancelledError:
            self._console.print(Text("\n  answered by another client, or withdrawn", style="dim"))
            raise
        finally:
            self.is_asking = False

    async def _choose(self, keys: list[str]) -> str | None:
        while True:
            typed = await self._typed(f"{'/'.join(keys)}? ")
            if typed is None:
                return None
            if typed.lower() in keys:
                return typed.lower()


def _keys(request: PermissionRequest) -> dict[str, tuple[str, str]]:
    """The key to press for each option: a letter by its kind, or its number where the letter is taken."""
    keys: dict[str, tuple[str, str]] = {}
    for number, option in enumerate(request.raw["options"], 1):
        letter = _LETTERS.get(option.get("kind"), str(number))
        name = str(option.get("name") or option["optionId"])
        keys[letter if letter not in keys else str(number)] = (option["optionId"], name)
    return keys
