"""How the agent speaks ACP version 2. Its words are written in version 1; this is the difference."""

from __future__ import annotations

from typing import Any

import msgspec

Update = dict[str, Any]

ONLY_HERE = frozenset(
    "user_message agent_message agent_thought state_update tool_call_content_chunk terminal_update "
    "terminal_output_chunk".split()
)
"""Kinds of updates that version 1 does not have."""
UNSUPPORTED_VERSION = -32022


def spoken(update: Update) -> Update | None:
    """An update as version 2 spells it; None for what it does not say."""
    match update["sessionUpdate"]:
        case "current_mode_update":
            return None  # `config_option_update` says it
        case "tool_call" | "tool_call_update":
            return {**_spoken_call(update), "sessionUpdate": "tool_call_update"}
        case "plan":
            plan = {"type": "items", "planId": "main", "entries": update["entries"]}
            return {"sessionUpdate": "plan_update", "plan": plan}
        case "available_commands_update":
            return {**update, "availableCommands": spoken_commands(update["availableCommands"])}
        case "config_option_update":
            return {**update, "configOptions": spoken_options(update["configOptions"])}
    return update


def spoken_raw(raw: msgspec.Raw) -> Update | None:
    update: Update = msgspec.json.decode(raw)
    return spoken(update)


def spoken_options(options: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{("configId" if name == "id" else name): member for name, member in o.items()} for o in options]


def spoken_commands(commands: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "command", **command, **_spoken_input(command)} for command in commands]


def spoken_answer(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer to session/new, resume and fork."""
    told = {name: member for name, member in answer.items() if name not in ("modes", "models")}
    return {**told, "configOptions": spoken_options(told.get("configOptions", []))}


def spoken_permission(params: dict[str, Any]) -> dict[str, Any]:
    call = params["toolCall"]
    asked = {name: member for name, member in params.items() if name != "toolCall"}
    subject = {"type": "tool_call", "toolCall": _spoken_call(call)}
    return {
        **asked,
        "title": call.get("title", "May I?"),
        "description": "The mock agent asks first.",
        "subject": subject,
    }


def state(state: str, **more: Any) -> Update:
    return {"sessionUpdate": "state_update", "state": state, **more}


def _spoken_input(command: dict[str, Any]) -> dict[str, Any]:
    return {"input": {"type": "text", **command["input"]}} if "input" in command else {}


def _spoken_call(call: dict[str, Any]) -> dict[str, Any]:
    return {**call, "content": [_spoken_content(item) for item in call["content"]]} if "content" in call else call


def _spoken_content(item: dict[str, Any]) -> dict[str, Any]:
    if item["type"] != "diff" or "changes" in item:
        return item
    path, old, new = item["path"], item["oldText"], item["newText"]
    change = {"operation": "modify", "path": path, "fileType": "text", "mimeType": "text/plain"}
    return {"type": "diff", "changes": [change], "patch": {"format": "git_patch", "text": _patch(path, old, new)}}


def _patch(path: str, old: str, new: str) -> str:
    before, after = old.splitlines(), new.splitlines()
    head = f"diff --git {path} {path}\n--- {path}\n+++ {path}\n@@ -1,{len(before)} +1,{len(after)} @@\n"
    return head + "".join(f"-{line}\n" for line in before) + "".join(f"+{line}\n" for line in after)
