"""What an agent asks of people: ACP's permissions, questions and forms as OpenCode's permissions and questions.

Each knows what OpenCode is told when it is asked and when it is settled, and what the agent is answered."""

from __future__ import annotations

from typing import Any, Literal

from sandbox_agent.core.frames import META
from sandbox_agent.core.json_values import Object, as_list, as_object, as_text, meta_value
from sandbox_agent.errors import InvalidParams
from sandbox_agent.history.entries import Envelope
from sandbox_agent.history.opencode.limits import INPUT_CHARS, PATCH_CHARS, cut
from sandbox_agent.history.opencode.telling import Telling
from sandbox_agent.history.opencode.tools import ToolPart

Reply = Literal["once", "always", "reject"]

_KINDS: dict[Reply, tuple[str, ...]] = {
    "once": ("allow_once", "allow_always"),
    "always": ("allow_always", "allow_once"),
    "reject": ("reject_once", "reject_always"),
}
_REPLIES: dict[str, Reply] = {"allow_once": "once", "allow_always": "always"}
_HEADER_CHARS = 30
_YES, _NO, _DONE = "Yes", "No", "Done"
_REJECTED: Object = {"outcome": "rejected", "_meta": {META: {"status": "rejected"}}}
_DECLINED: Object = {"action": "decline"}


class Permission:
    """`ask` is the id of the agent's request, as clients answer it."""

    def __init__(self, request_id: str, ask: Any, params: Object, tool: ToolPart) -> None:
        self.id = request_id
        self.ask = ask
        self.message_id = tool.message_id
        self._options = [as_object(option) for option in as_list(params.get("options"))]
        self._tool = tool
        self.request: Object = {}

    def tell_asked(self, telling: Telling) -> None:
        permission, given = self._tool.native()
        path = given.get("filePath")
        pattern = given.get("command") or path or given.get("pattern") or given.get("url") or self._tool.title
        metadata: Object = {"title": self._tool.title}
        if "command" in given:
            metadata["command"] = cut(as_text(given["command"]), INPUT_CHARS)
        if permission == "edit":
            metadata |= {"filepath": as_text(path), "diff": cut(self._tool.diff, PATCH_CHARS)}
        is_lasting = any(option.get("kind") == "allow_always" for option in self._options)
        self.request = {
            "id": self.id,
            "sessionID": telling.session_id,
            "permission": permission,
            "patterns": [cut(as_text(pattern), INPUT_CHARS)],
            "metadata": metadata,
            "always": ["*"] if is_lasting else [],
            "tool": {"messageID": self._tool.message_id, "callID": self._tool.call_id},
        }
        telling.of_no_session("permission.asked", **self.request)

    def tell_settled(self, telling: Telling, answer: Envelope | None) -> None:
        """Anything but a selected allow option, also an error or a withdrawal, is a reject."""
        outcome = as_object(as_object(answer.result if answer is not None else None).get("outcome"))
        chosen = next((o for o in self._options if o.get("optionId") == outcome.get("optionId")), {})
        reply = _REPLIES.get(as_text(chosen.get("kind")), "reject")
        telling.tell("permission.replied", requestID=self.id, reply=reply)

    def result(self, reply: Reply) -> Object:
        """What the agent is answered. Raises InvalidParams when it offers nothing of the kind."""
        for kind in _KINDS[reply]:
            for option in self._options:
                if option.get("kind") == kind:
                    return {"outcome": {"outcome": "selected", "optionId": option.get("optionId")}}
        if reply == "reject":
            return {"outcome": {"outcome": "cancelled"}}
        offered = ", ".join(as_text(option.get("kind")) for option in self._options)
        raise InvalidParams(f"the agent offers no option to allow this; it offers: {offered or 'nothing'}")


class Question:
    """A question with options, or a form: one question for each of its fields."""

    def __init__(self, request_id: str, ask: Any, params: Object, *, is_form: bool) -> None:
        self.id = request_id
        self.ask = ask
        self._fields = _form_fields(params) if is_form else [_question_field(params)]
        self._is_form = is_form
        self.request: Object = {}

    def tell_asked(self, telling: Telling) -> None:
        self.request = {
            "id": self.id,
            "sessionID": telling.session_id,
            "questions": [field.info for field in self._fields],
        }
        telling.of_no_session("question.asked", **self.request)

    def tell_settled(self, telling: Telling, answer: Envelope | None) -> None:
        answers = self._said(as_object(answer.result)) if answer is not None and answer.error is None else None
        if answers is None:
            telling.tell("question.rejected", requestID=self.id)
        else:
            telling.tell("question.replied", requestID=self.id, answers=answers)

    def result(self, answers: list[list[str]]) -> Object:
        """What the agent is answered. Raises InvalidParams for answers that do not fit the questions."""
        if len(answers) != len(self._fields):
            raise InvalidParams(f"{len(self._fields)} questions were asked, {len(answers)} answers were given")
        if not self._is_form:
            chosen = [self._fields[0].ids.get(label, label) for label in answers[0]]
            told = {"answers": [chosen], "response": ", ".join(chosen), "status": "answered"}
            return {"outcome": "answered", "answers": [chosen], "_meta": {META: told}}
        read = [(field.name, field.read(said)) for field, said in zip(self._fields, answers, strict=True) if field.name]
        return {"action": "accept", "content": {name: value for name, value in read if value is not None}}

    def refusal(self) -> Object:
        return _DECLINED if self._is_form else _REJECTED

    def _said(self, result: Object) -> list[list[str]] | None:
        """What was answered, wherever it was; None if it was refused."""
        if self._is_form:
            content = as_object(result.get("content"))
            is_refused = result.get("action") != "accept"
            return None if is_refused else [field.spell(content.get(field.name)) for field in self._fields]
        outcome = result.get("outcome")
        verdict = as_object(outcome).get("outcome") if isinstance(outcome, dict) else outcome
        if verdict in ("rejected", "cancelled"):
            return None
        rows = as_list(meta_value(result, "answers") or result.get("answers"))
        first = rows[0] if rows and isinstance(rows[0], list) else rows
        return [self._fields[0].spell(first)]


class _Field:
    """One question: what is asked, the ids behind the labels, and the type of what is answered."""

    def __init__(self, name: str, question: str, options: list[tuple[str, str, str]], schema: Object) -> None:
        """`options` are ids, labels and descriptions."""
        self.name = name
        self.ids = {label: id_ for id_, label, _ in options}
        self._labels = {id_: label for id_, label, _ in options}
        self._type = as_text(schema.get("type"))
        listed = [{"label": label, "description": description} for _, label, description in options]
        self.info: Object = {
            "question": cut(question, INPUT_CHARS),
            "header": (name or question)[:_HEADER_CHARS],
            "options": listed,
            "multiple": self._type == "array",
            "custom": not options,
        }

    def read(self, said: list[str]) -> Any:
        chosen = [self.ids.get(label, label) for label in said]
        if self._type == "array":
            return chosen
        if not chosen or chosen[0] == "":
            return None
        if self._type == "boolean":
            return chosen[0] == _YES
        if self._type not in ("number", "integer"):
            return chosen[0]
        try:
            return int(chosen[0]) if self._type == "integer" else float(chosen[0])
        except ValueError:
            raise InvalidParams(f"the answer to {self.name!r} must be a number, not {chosen[0][:80]!r}") from None

    def spell(self, value: Any) -> list[str]:
        if isinstance(value, bool):
            return [_YES if value else _NO]
        values = value if isinstance(value, list) else [] if value is None else [value]
        return [self._labels.get(as_text(one), as_text(one)) for one in values]


def _question_field(params: Object) -> _Field:
    options = [_option(option) for option in as_list(params.get("options"))]
    schema = {"type": "array" if params.get("multiSelect") is True else "string"}
    return _Field("", as_text(params.get("prompt")), options, schema)


def _form_fields(params: Object) -> list[_Field]:
    message = as_text(params.get("message"))
    properties = as_object(as_object(params.get("requestedSchema")).get("properties"))
    fields = [_form_field(name, message, as_object(schema)) for name, schema in properties.items()]
    if fields:
        return fields
    link = as_text(params.get("url"))
    return [_Field("", f"{message} {link}".strip(), [(_DONE, _DONE, "")], {})]


def _form_field(name: str, message: str, schema: Object) -> _Field:
    said = as_text(schema.get("description") or schema.get("title")) or name
    choices = as_object(schema.get("items")) if schema.get("type") == "array" else schema
    options = [(as_text(value), as_text(value), "") for value in as_list(choices.get("enum"))]
    for choice in map(as_object, as_list(choices.get("oneOf") or choices.get("anyOf"))):
        value = as_text(choice.get("const"))
        options.append((value, as_text(choice.get("title")) or value, as_text(choice.get("description"))))
    if schema.get("type") == "boolean":
        options = [(_YES, _YES, ""), (_NO, _NO, "")]
    return _Field(name, f"{message}\n{said}" if message else said, options, schema)


def _option(option: Any) -> tuple[str, str, str]:
    if not isinstance(option, dict):
        return as_text(option), as_text(option), ""
    label = as_text(option.get("label") or option.get("name") or option.get("id"))
    return as_text(option.get("id", option.get("value", label))), label, as_text(option.get("description"))
