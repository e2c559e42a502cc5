"""The table of methods: requests and their answers, of clients and of agents."""

from __future__ import annotations

from typing import NamedTuple

from sandbox_agent.core.json_values import as_object
from sandbox_agent.core.versions.choices import OPTIONS, SESSION_ANSWER
from sandbox_agent.core.versions.contents import BLOCKS
from sandbox_agent.core.versions.kinds import TOOL_CALL_UPDATE, tool_title
from sandbox_agent.core.versions.pairs import SAME, Closed, Custom, Each, Field, Named, Reading, Record, Tagged
from sandbox_agent.core.versions.version import Object, Version


class Call(NamedTuple):
    """A method in either version, its params, and its answer."""

    v1: str
    v2: str
    params: Reading = SAME
    answer: Reading = SAME


def _none(_: Object) -> list[object]:
    return []


def _nothing(_: Object) -> Object:
    return {}


_STDIO = Record(Field("args", v1_needs=_none), Field("env", v1_needs=_none), v2_says={"type": "stdio"})
_HTTP = Record(Field("headers", v1_needs=_none))
MCP_SERVERS = Each(Tagged("type", {None: _STDIO, "stdio": _STDIO, "http": _HTTP, "sse": _HTTP}))
_SYSTEM_PROMPT = Record(Field("content", reading=BLOCKS))
_SERVERS_REQUIRED = Record(
    Field("mcpServers", reading=MCP_SERVERS, v1_needs=_none), Field("systemPrompt", reading=_SYSTEM_PROMPT)
)
_SERVERS = Record(Field("mcpServers", reading=MCP_SERVERS), Field("systemPrompt", reading=_SYSTEM_PROMPT))


def _load_up(params: Object, is_exact: bool) -> Object:
    return {**_SERVERS.plain(params, Version.V2, is_exact=is_exact), "replayFrom": {"type": "start"}}


def _load_down(params: Object, is_exact: bool) -> Object:
    there = _SERVERS_REQUIRED.plain(params, Version.V1, is_exact=is_exact)
    return {name: member for name, member in there.items() if name != "replayFrom"}


LOAD = Custom(up=_load_up, down=_load_down)
RESUME = _SERVERS

CALLS = (
    Call("authenticate", "auth/login"),
    Call("logout", "auth/logout"),
    Call("session/new", "session/new", _SERVERS_REQUIRED, SESSION_ANSWER),
    Call("session/resume", "session/resume", RESUME, SESSION_ANSWER),
    Call("session/fork", "session/fork", _SERVERS, SESSION_ANSWER),
    Call("session/prompt", "session/prompt", Record(Field("prompt", reading=BLOCKS))),
    Call(
        "session/set_config_option",
        "session/set_config_option",
        Record(v2_says={"type": "id"}),
        Record(Field("configOptions", reading=OPTIONS)),
    ),
)
"""Requests of clients. Those that are not here are the same in both versions, or known to one only. `session/load`,
and setting a mode, depend on more than the method: see `messages`."""


def _permission_up(params: Object, is_exact: bool) -> Object:
    call = params.get("toolCall")
    there = {name: member for name, member in params.items() if name != "toolCall"}
    title = as_object(call).get("title")
    there["title"] = title if isinstance(title, str) and title else tool_title(as_object(call))
    if "toolCall" in params:
        read = TOOL_CALL_UPDATE.read(call, Version.V2, is_exact=is_exact)
        there["subject"] = {"type": "tool_call", "toolCall": read}
    return there


def _permission_down(params: Object, is_exact: bool) -> Object:
    there = {n: member for n, member in params.items() if n not in ("title", "description", "subject")}
    if "options" in params:
        there["options"] = _PERMISSION_OPTIONS.read(params["options"], Version.V1, is_exact=is_exact)
    there["toolCall"] = _asked_call(params, as_object(params.get("subject")), is_exact=is_exact)
    return there


def _asked_call(params: Object, subject: Object, *, is_exact: bool) -> Object:
    """The tool call that a permission is about, or one made up for what else it is about."""
    title = params.get("title")
    call = subject.get("toolCall")
    if isinstance(call, dict) and isinstance(call.get("toolCallId"), str):
        read = as_object(TOOL_CALL_UPDATE.read(call, Version.V1, is_exact=is_exact))
        return read if isinstance(read.get("title"), str) else {**read, "title": title}
    known = subject.get("toolCallId")
    made: Object = {"toolCallId": known if isinstance(known, str) else f"permission: {title}", "title": title}
    if subject.get("type") == "command":
        made |= {"kind": "execute", "rawInput": {n: subject[n] for n in ("command", "cwd") if n in subject}}
    return made


_PERMISSION_OPTIONS = Each(
    Record(
        # A kind that version 1 does not know is never shown as one that allows: clients choose by kind, too.
        Field("kind", reading=Closed("allow_once allow_always reject_once reject_always", otherwise="reject_once"))
    )
)
PERMISSION = Custom(up=_permission_up, down=_permission_down)


def _outcome_down(outcome: Object, is_exact: bool) -> Object:
    if outcome.get("outcome") in ("cancelled", "selected"):
        return outcome
    there = {name: member for name, member in outcome.items() if name == "_meta"}
    return {**there, "outcome": "cancelled"}


_OUTCOME = Custom(up=lambda outcome, _: outcome, down=_outcome_down)


def _format_down(field: Object, is_exact: bool) -> Object:
    is_known = field.get("format") in ("email", "uri", "date", "date-time", None)
    return {name: member for name, member in field.items() if name != "format" or is_known}


_FORM = Record(
    Field("type", v2_needs="object"),
    Field("properties", reading=Named(Custom(up=lambda field, _: field, down=_format_down)), v2_needs=_nothing),
)

ASKS = (
    Call(
        "session/request_permission",
        "session/request_permission",
        PERMISSION,
        Record(Field("outcome", reading=_OUTCOME)),
    ),
    Call("elicitation/create", "elicitation/create", Record(Field("requestedSchema", reading=_FORM))),
)
"""Requests of agents. `fs/*` and `terminal/*` are version 1 only."""
