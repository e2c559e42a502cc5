"""One call between two versions of ACP: as the agent understands it, and its answer as whoever called expects it."""

from __future__ import annotations

from typing import Any

from sandbox_agent.core import frames, versions
from sandbox_agent.core.ids import SessionId
from sandbox_agent.core.json_values import read_json
from sandbox_agent.core.methods import UPDATE
from sandbox_agent.core.session import IDLE, Ask, Call, Session
from sandbox_agent.core.versions import Version
from sandbox_agent.errors import SandboxAgentError

STATE_UPDATE = "state_update"
_ACTIVITY_BYTES = 16 << 10
_STATE_CHARS = 64


def speak(call: Call, version: Version) -> None:
    """Word the call for an agent of this version. `initialize` settles the version, so it stays as it is."""
    if call.version is version or call.method == "initialize":
        return
    params = read_json(frames.params_of(call.line))
    method, params = versions.request(call.method, params, from_=call.version, to=version)
    call.asked, call.line = call.line, frames.request(b"%d" % call.id, method, params)


def answer_to(call: Call, raw: bytes, version: Version, *, was: bytes) -> bytes:
    """The agent's answer, which has the id `was`, under the id and in the version of the client.

    Errors are the same in both."""
    if not call.asked or (result := frames.member(raw, "result")) is None:
        return frames.with_id(raw, call.key, was=was)
    asked = read_json(frames.params_of(call.asked))
    said = versions.result(call.method, read_json(result), from_=version, to=call.version, asked=asked)
    return frames.result(call.key, said)


def begun(call: Call) -> bytes:
    """What a client of version 2 is answered when its prompt goes to an agent of version 1."""
    return frames.result(call.key, {"messageId": call.message_id})


def ended(call: Call, outcome: dict[str, Any]) -> bytes:
    """What a client of version 1 is answered when its prompt is over at an agent of version 2."""
    name = "error" if "error" in outcome else "result"
    return b'{"jsonrpc":"2.0","id":%b,"%b":%b}' % (call.key or b"null", name.encode(), frames.to_json(outcome[name]))


def interrupted(session: Session, error: SandboxAgentError | None) -> bytes:
    """What an agent of version 2 would say at the end of work that it was kept from ending.

    `error` is None where it did nothing but in the background."""
    update: dict[str, Any] = {"sessionUpdate": STATE_UPDATE, "state": "idle"}
    if error is not None:
        failure = read_json(frames.member(frames.failure(b"0", error), "error") or b"null")
        update |= {"stopReason": "error", "error": failure}
    if "background" in session.activity:
        update["background"] = []
    return frames.notification(UPDATE, {"sessionId": session.id, "update": update})


def idle(session: SessionId, outcome: dict[str, Any]) -> bytes:
    """The end of a turn as version 2 tells it, of an agent that told it as version 1 does."""
    update = versions.idle_update(**outcome)
    return frames.notification(UPDATE, {"sessionId": session, "update": update})


def acknowledgement(call: Call, raw: bytes) -> bytes:
    """What a client of version 2 is answered when an agent of version 2 has taken its prompt up: always a name."""
    said = read_json(frames.member(raw, "result") or b"null")
    if isinstance(said, dict) and isinstance(said.get("messageId"), str):
        return frames.with_id(raw, call.key)
    return begun(call)


def activity(line: bytes, update: dict[str, Any]) -> dict[str, Any] | None:
    """What a `state_update` says that the agent does; None if it says nothing. A long one is kept without its lists."""
    state = update.get("state")
    if not isinstance(state, str):
        return None
    said = {name: member for name, member in update.items() if name not in ("sessionUpdate", "_meta")}
    return said if len(line) <= _ACTIVITY_BYTES else {"state": state[:_STATE_CHARS]}


def update_in(line: bytes) -> dict[str, Any]:
    """`params.update` of a `session/update`."""
    params = read_json(frames.params_of(line))
    update = params.get("update") if isinstance(params, dict) else None
    return update if isinstance(update, dict) else {}


def snapshot(session: Session, version: Version) -> dict[str, Any]:
    """What the session does now, as version 2 says it to one who has just come."""
    if version is Version.V2:
        now = session.activity
    elif session.running is None:
        now = IDLE
    else:
        now = {"state": "requires_action" if session.asks else "running"}
    return {"sessionId": session.id, "update": {"sessionUpdate": STATE_UPDATE, **now}}


def policy_params(ask: Ask, version: Version) -> Any:
    """The params of a permission request as version 1 has them, which rules are written for."""
    params = read_json(frames.params_of(ask.line))
    return params if version is Version.V1 else versions.ask(ask.method, params, from_=version, to=Version.V1)[1]


def client_answer(ask: Ask, raw: bytes, *, from_: Version, to: Version) -> bytes:
    """A client's answer to the agent's request, in the version that the agent speaks, under our id."""
    result = frames.member(raw, "result") if from_ is not to else None
    if result is None:
        return frames.with_id(raw, b"%d" % ask.id)
    said = versions.ask_result(ask.method, read_json(result), from_=from_, to=to)
    return frames.result(b"%d" % ask.id, said)
