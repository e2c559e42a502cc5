"""Four provider APIs as the loopback LLM speaks them: how each asks, and how each is answered."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any, ClassVar, Protocol

from support.llm_replies import Reply, ToolCall, Turn, Words, flatten, unwrapped

Body = dict[str, Any]
Event = tuple[str | None, Body | str]
_serial = itertools.count(1)
_THOUGHTS = ("Thinking ", "about it")


class Dialect(Protocol):
    name: str

    def read(self, body: Body) -> Turn: ...
    def stream(self, reply: Words | ToolCall, body: Body) -> Iterator[Event]: ...
    def whole(self, reply: Words | ToolCall, body: Body) -> Body: ...
    def error(self, status: int) -> Body: ...


def _id(prefix: str) -> str:
    return f"{prefix}_{next(_serial):012d}"


class Anthropic:
    name = "anthropic"
    _USAGE: ClassVar[Body] = {
        "input_tokens": 10,
        "output_tokens": 5,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
    }
    _NOT_THE_USER = ("<", "[Request interrupted", "Today's date")

    def read(self, body: Body) -> Turn:
        """The newest real words of the user, else the newest tool result.

        Claude Code puts reminders after the user's message, and after an interrupt joins the tool result and the
        next message into one.
        """
        tools = {tool["name"]: tool.get("input_schema") or {} for tool in body.get("tools") or [] if "name" in tool}
        rest = ""
        for message in reversed(body.get("messages") or []):
            if message.get("role") == "assistant":
                break
            content = message.get("content") or ""
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            texts = [block["text"] for block in blocks if block.get("type") == "text" and message.get("role") == "user"]
            spoken = [text for text in texts if not text.lstrip().startswith(self._NOT_THE_USER)]
            if spoken:
                return Turn(spoken[-1], tools)
            results = [block for block in blocks if block.get("type") == "tool_result"]
            if results:
                return Turn(flatten(results[-1].get("content")), tools, is_tool_result=True)
            rest = rest or flatten(content)
        return Turn(rest, tools)

    def stream(self, reply: Words | ToolCall, body: Body) -> Iterator[Event]:
        for event in self._events(reply, body):
            yield event["type"], event

    def _events(self, reply: Words | ToolCall, body: Body) -> Iterator[Body]:
        yield {"type": "message_start", "message": self._message(body, [], None)}
        index = 0
        if isinstance(reply, Words) and reply.thinking:
            thoughts = [{"type": "thinking_delta", "thinking": thought} for thought in _THOUGHTS]
            begin = {"type": "thinking", "thinking": "", "signature": ""}
            yield from self._block(index, begin, [*thoughts, {"type": "signature_delta", "signature": "c2ln"}])
            index += 1
        pieces = reply.pieces if isinstance(reply, Words) else ("Running a tool.",)
        deltas = ({"type": "text_delta", "text": piece} for piece in pieces)
        yield from self._block(index, {"type": "text", "text": ""}, deltas)
        if isinstance(reply, ToolCall):
            arguments = json.dumps(reply.arguments)
            halves = (arguments[: len(arguments) // 2], arguments[len(arguments) // 2 :])
            start: Body = {"type": "tool_use", "id": _id("toolu"), "name": reply.name, "input": {}}
            parts = ({"type": "input_json_delta", "partial_json": half} for half in halves)
            yield from self._block(index + 1, start, parts)
        yield {
            "type": "message_delta",
            "delta": {"stop_reason": self._stop(reply), "stop_sequence": None},
            "usage": self._USAGE,
        }
        yield {"type": "message_stop"}

    def _block(self, index: int, start: Body, deltas: Any) -> Iterator[Body]:
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}

    def whole(self, reply: Words | ToolCall, body: Body) -> Body:
        block: Body = {"type": "text", "text": reply.text} if isinstance(reply, Words) else {}
        if isinstance(reply, ToolCall):
            block = {"type": "tool_use", "id": _id("toolu"), "name": reply.name, "input": reply.arguments}
        return self._message(body, [block], self._stop(reply))

    def _message(self, body: Body, content: list[Body], stop: str | None) -> Body:
        message = {"id": _id("msg"), "type": "message", "role": "assistant", "model": body.get("model", "fake-model")}
        return {**message, "content": content, "stop_reason": stop, "stop_sequence": None, "usage": self._USAGE}

    def _stop(self, reply: Reply) -> str:
        return "tool_use" if isinstance(reply, ToolCall) else "end_turn"

    def error(self, status: int) -> Body:
        return {"type": "error", "error": {"type": "api_error", "message": f"asked to fail with {status}"}}


class Chat:
    name = "chat"
    _USAGE: ClassVar[Body] = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}

    def read(self, body: Body) -> Turn:
        functions = [tool["function"] for tool in body.get("tools") or [] if "function" in tool]
        messages = body.get("messages") or [{}]
        spoken = [m for m in messages if m.get("role") != "user" or unwrapped(flatten(m.get("content")))]
        last = (spoken or messages)[-1]  # some put reminders after the user's message
        tools = {function["name"]: function.get("parameters") or {} for function in functions}
        return Turn(flatten(last.get("content")), tools, is_tool_result=last.get("role") == "tool")

    def stream(self, reply: Words | ToolCall, body: Body) -> Iterator[Event]:
        frame = self._frame("chat.completion.chunk", body)

        def chunk(delta: Body, finish: str | None = None) -> Event:
            return None, {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

        yield chunk({"role": "assistant", "content": ""})
        if isinstance(reply, ToolCall):
            yield chunk({"content": "Running a tool."})
            yield chunk({"tool_calls": [{"index": 0, **self._call(reply)}]})
        else:
            yield from (chunk({"reasoning_content": thought}) for thought in _THOUGHTS if reply.thinking)
            yield from (chunk({"content": piece}) for piece in reply.pieces)
        yield chunk({}, self._finish(reply))
        yield None, {**frame, "choices": [], "usage": self._USAGE}
        yield None, "[DONE]"

    def whole(self, reply: Words | ToolCall, body: Body) -> Body:
        message: Body = {"role": "assistant", "content": reply.text if isinstance(reply, Words) else None}
        if isinstance(reply, ToolCall):
            message["tool_calls"] = [self._call(reply)]
        choice = {"index": 0, "message": message, "finish_reason": self._finish(reply)}
        return {**self._frame("chat.completion", body), "choices": [choice], "usage": self._USAGE}

    def _frame(self, kind: str, body: Body) -> Body:
        return {"id": _id("chatcmpl"), "object": kind, "created": 1, "model": body.get("model")}

    def _call(self, reply: ToolCall) -> Body:
        function = {"name": reply.name, "arguments": json.dumps(reply.arguments)}
        return {"id": _id("call"), "type": "function", "function": function}

    def _finish(self, reply: Reply) -> str:
        return "tool_calls" if isinstance(reply, ToolCall) else "stop"

    def error(self, status: int) -> Body:
        return {"error": {"message": f"asked to fail with {status}", "type": "server_error"}}


def _namespace(name: str, body: Body) -> str:
    """Tools of MCP servers are offered in one namespace for each server, and called with its name apart."""
    for tool in body.get("tools") or []:
        offered = {inner.get("name") for inner in tool.get("tools") or []}
        if tool.get("type") == "namespace" and name.removeprefix(f"{tool['name']}__") in offered - {name}:
            return str(tool["name"])
    return ""


class Responses(Chat):
    name = "responses"

    def read(self, body: Body) -> Turn:
        tools: dict[str, Body] = {}
        for tool in body.get("tools") or []:
            tools[tool.get("name") or tool.get("type") or "?"] = tool.get("parameters") or {}
        said = body.get("input") or []
        last = {"content": said} if isinstance(said, str) else said[-1] if said else {}
        if str(last.get("type", "")).endswith("_output"):
            return Turn(flatten(last.get("output")), tools, is_tool_result=True)
        return Turn(flatten(last.get("content")), tools)

    def stream(self, reply: Words | ToolCall, body: Body) -> Iterator[Event]:
        for number, event in enumerate(self._events(reply, body)):
            yield event["type"], {**event, "sequence_number": number}

    def whole(self, reply: Words | ToolCall, body: Body) -> Body:
        response: Body = list(self._events(reply, body))[-1]["response"]
        return response

    def _events(self, reply: Words | ToolCall, body: Body) -> Iterator[Body]:
        base: Body = {
            "id": _id("resp"),
            "object": "response",
            "created_at": 1,
            "model": body.get("model"),
            "output": [],
            "status": "in_progress",
            "usage": None,
            "error": None,
            "incomplete_details": None,
            "metadata": {},
            "instructions": None,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }
        yield {"type": "response.created", "response": base}
        yield {"type": "response.in_progress", "response": base}
        output: list[Body] = []
        if isinstance(reply, Words) and reply.thinking:
            output.append((yield from self._reasoning(len(output))))
        if isinstance(reply, Words):
            output.append((yield from self._message(len(output), reply)))
        else:
            output.append((yield from self._function_call(len(output), reply, _namespace(reply.name, body))))
        usage = {
            "input_tokens": 10,
            "output_tokens": 5,
            "total_tokens": 15,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        done = {**base, "status": "completed", "output": output, "usage": usage}
        yield {"type": "response.completed", "response": done}

    def _reasoning(self, index: int) -> Any:
        item: Body = {"type": "reasoning", "id": _id("rs"), "summary": [], "encrypted_content": "ZmFrZQ=="}
        at = {"item_id": item["id"], "output_index": index, "summary_index": 0}
        yield {"type": "response.output_item.added", "output_index": index, "item": item}
        empty = {"type": "summary_text", "text": ""}
        yield {"type": "response.reasoning_summary_part.added", **at, "part": empty}
        for thought in _THOUGHTS:
            yield {"type": "response.reasoning_summary_text.delta", **at, "delta": thought}
        text = "".join(_THOUGHTS)
        yield {"type": "response.reasoning_summary_text.done", **at, "text": text}
        item = {**item, "summary": [{"type": "summary_text", "text": text}]}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
        return item

    def _message(self, index: int, reply: Words) -> Any:
        item: Body = {"type": "message", "id": _id("msg"), "role": "assistant", "status": "in_progress", "content": []}
        at = {"item_id": item["id"], "output_index": index, "content_index": 0}
        yield {"type": "response.output_item.added", "output_index": index, "item": item}
        empty: Body = {"type": "output_text", "text": "", "annotations": []}
        yield {"type": "response.content_part.added", **at, "part": empty}
        for piece in reply.pieces:
            yield {"type": "response.output_text.delta", **at, "delta": piece}
        part = {**empty, "text": reply.text}
        yield {"type": "response.output_text.done", **at, "text": reply.text}
        yield {"type": "response.content_part.done", **at, "part": part}
        item = {**item, "status": "completed", "content": [part]}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
        return item

    def _function_call(self, index: int, reply: ToolCall, namespace: str) -> Any:
        item = {"type": "function_call", "id": _id("fc"), "call_id": _id("call"), "name": reply.name}
        if namespace:
            item |= {"namespace": namespace, "name": reply.name.removeprefix(f"{namespace}__")}
        at = {"item_id": item["id"], "output_index": index}
        arguments = json.dumps(reply.arguments)
        begun = {**item, "arguments": "", "status": "in_progress"}
        yield {"type": "response.output_item.added", "output_index": index, "item": begun}
        yield {"type": "response.function_call_arguments.delta", **at, "delta": arguments}
        yield {"type": "response.function_call_arguments.done", **at, "arguments": arguments}
        ended = {**item, "arguments": arguments, "status": "completed"}
        yield {"type": "response.output_item.done", "output_index": index, "item": ended}
        return ended


class Gemini:
    name = "gemini"

    def read(self, body: Body) -> Turn:
        tools: dict[str, Body] = {}
        for tool in body.get("tools") or []:
            for function in tool.get("functionDeclarations") or tool.get("function_declarations") or []:
                tools[function["name"]] = function.get("parametersJsonSchema") or function.get("parameters") or {}
        config = body.get("generationConfig") or {}
        shape = config.get("responseJsonSchema") or config.get("responseSchema")
        parts = ((body.get("contents") or [{}])[-1]).get("parts") or []
        results = [part["functionResponse"] for part in parts if "functionResponse" in part]
        if results:
            return Turn(flatten(results[-1].get("response")), tools, is_tool_result=True)
        spoken = [part["text"] for part in parts if part.get("text")]  # a turn cut short leaves its words before ours
        return Turn(spoken[-1] if spoken else "", tools, wanted_shape=shape)

    def stream(self, reply: Words | ToolCall, body: Body) -> Iterator[Event]:
        if isinstance(reply, ToolCall):
            yield None, self._answer([{"text": "Running a tool."}])
            yield None, self.whole(reply, body)
            return
        if reply.thinking:
            yield None, self._answer([{"text": "".join(_THOUGHTS), "thought": True}])
        for piece in reply.pieces:
            yield None, self._answer([{"text": piece}])
        yield None, self._answer([{"text": ""}], finish="STOP")

    def whole(self, reply: Words | ToolCall, body: Body) -> Body:
        part: Body = {"text": reply.text} if isinstance(reply, Words) else {}
        if isinstance(reply, ToolCall):
            call = {"id": _id("fc"), "name": reply.name, "args": reply.arguments}
            part = {"functionCall": call, "thoughtSignature": "ZmFrZQ=="}
        return self._answer([part], finish="STOP")

    def _answer(self, parts: list[Body], finish: str | None = None) -> Body:
        candidate: Body = {"index": 0, "content": {"role": "model", "parts": parts}}
        if finish:
            candidate["finishReason"] = finish
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "fake", "responseId": "fake"}

    def error(self, status: int) -> Body:
        return {"error": {"code": status, "message": f"asked to fail with {status}", "status": "INTERNAL"}}


def dialect_of(path: str) -> tuple[Dialect, bool] | None:
    """The dialect of a path, and whether the path itself asks for a stream."""
    if path.endswith("/messages"):
        return Anthropic(), False
    if path.endswith("/chat/completions"):
        return Chat(), False
    if path.endswith("/responses"):
        return Responses(), False
    if path.endswith(":generateContent"):
        return Gemini(), False
    if path.endswith(":streamGenerateContent"):
        return Gemini(), True
    return None
