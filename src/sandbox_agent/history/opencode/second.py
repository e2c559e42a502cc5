"""Messages, sessions and requests in the words of OpenCode's second API, made of those of the first."""

from __future__ import annotations

from sandbox_agent.core.json_values import Object, as_object, as_text

_KEPT = ("id", "parentID", "projectID", "agent", "model", "cost", "tokens", "time", "title")


def second_session(session: Object) -> Object:
    """SessionV2Info."""
    return {
        **{name: session[name] for name in _KEPT if name in session},
        "location": {"directory": session["directory"]},
    }


def second_message(message: Object) -> Object:
    """SessionMessage: of the user the text and the files, of the assistant text, thoughts and tool calls in order."""
    info, parts = message["info"], message["parts"]
    if info["role"] == "user":
        said = [as_text(part.get("text")) for part in parts if part["type"] == "text"]
        files = [_attachment(part) for part in parts if part["type"] == "file"]
        user: Object = {"id": info["id"], "type": "user", "time": info["time"], "text": "\n".join(said)}
        return {**user, "files": files} if files else user
    told: Object = {
        "id": info["id"],
        "type": "assistant",
        "time": info["time"],
        "agent": info["agent"],
        "model": {"id": info["modelID"], "providerID": info["providerID"]},
        "content": [made for part in parts if (made := _content(part)) is not None],
        "cost": info["cost"],
        "tokens": {name: count for name, count in info["tokens"].items() if name != "total"},
    }
    if "finish" in info:
        told["finish"] = info["finish"]
    if "error" in info:
        told["error"] = _problem(as_text(as_object(info["error"].get("data")).get("message")))
    return told


def second_permission(request: Object) -> Object:
    """PermissionV2Request."""
    return {
        "id": request["id"],
        "sessionID": request["sessionID"],
        "action": request["permission"],
        "resources": request["patterns"],
        "save": request["always"],
        "metadata": request["metadata"],
        "source": {"type": "tool", **request["tool"]},
    }


def _content(part: Object) -> Object | None:
    kind = part["type"]
    if kind == "text":
        return {"type": "text", "id": part["id"], "text": part["text"]}
    if kind == "reasoning":
        return {"type": "reasoning", "id": part["id"], "text": part["text"], "time": _times(part["time"])}
    if kind == "tool":
        state = part["state"]
        time = _times(as_object(state.get("time")))
        return {
            "type": "tool",
            "id": part["callID"],
            "name": part["tool"],
            "state": _tool_state(state),
            "time": time,
        }
    return None


def _tool_state(state: Object) -> Object:
    status = state["status"]
    if status == "pending":
        return {"status": "pending", "input": as_text(state.get("raw"))}
    metadata = as_object(state.get("metadata"))
    output = as_text(state.get("output") or metadata.get("output"))
    content = [{"type": "text", "text": output}] if output else []
    told: Object = {"status": status, "input": state["input"], "structured": metadata, "content": content}
    return {**told, "error": _problem(as_text(state.get("error")))} if status == "error" else told


def _times(time: Object) -> Object:
    """A call that waits has no time of its own yet."""
    told: Object = {"created": time.get("start", 0)}
    return {**told, "completed": time["end"]} if "end" in time else told


def _attachment(part: Object) -> Object:
    told: Object = {"uri": part["url"], "mime": part["mime"]}
    return {**told, "name": part["filename"]} if "filename" in part else told


def _problem(message: str) -> Object:
    return {"type": "unknown", "message": message}
