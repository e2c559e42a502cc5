"""What OpenCode's clients send, as types. Members that mean nothing to us are not listed and pass unread."""

from __future__ import annotations

import mimetypes
from typing import Annotated, Any, Literal
from urllib.parse import unquote

import msgspec

from sandbox_agent.errors import InvalidParams
from sandbox_agent.hub.processes.views import TerminalSize


class ModelWish(msgspec.Struct):
    provider_id: str = msgspec.field(name="providerID")
    id: str | None = None
    model_id: str | None = msgspec.field(name="modelID", default=None)

    @property
    def model(self) -> str:
        return self.model_id or self.id or ""


class NewSession(msgspec.Struct):
    title: str | None = None
    agent: str | None = None
    model: ModelWish | None = None
    parent_id: str | None = msgspec.field(name="parentID", default=None)
    metadata: dict[str, Any] = {}


class Times(msgspec.Struct):
    archived: float | None = None


class SessionChange(msgspec.Struct):
    title: str | None = None
    metadata: dict[str, Any] | None = None
    time: Times | None = None


class Prompt(msgspec.Struct):
    parts: list[dict[str, Any]]
    message_id: str | None = msgspec.field(name="messageID", default=None)
    model: ModelWish | None = None
    agent: str | None = None
    no_reply: bool = msgspec.field(name="noReply", default=False)
    system: str | None = None


class CommandCall(msgspec.Struct):
    command: str
    arguments: str
    message_id: str | None = msgspec.field(name="messageID", default=None)
    model: str | None = None
    agent: str | None = None
    parts: list[dict[str, Any]] = []


class Fork(msgspec.Struct):
    message_id: str | None = msgspec.field(name="messageID", default=None)


class Revert(msgspec.Struct):
    message_id: Annotated[str, msgspec.Meta(pattern="^msg")] = msgspec.field(name="messageID")
    part_id: Annotated[str, msgspec.Meta(pattern="^prt")] | None = msgspec.field(name="partID", default=None)


class PermissionReply(msgspec.Struct):
    reply: Literal["once", "always", "reject"]
    message: str | None = None


class PermissionResponse(msgspec.Struct):
    """The older spelling, at `/session/{id}/permissions/{id}`."""

    response: Literal["once", "always", "reject"]


class QuestionReply(msgspec.Struct):
    answers: list[list[str]]


class LogLine(msgspec.Struct):
    service: str
    level: Literal["debug", "info", "error", "warn"]
    message: str


class TuiText(msgspec.Struct):
    text: str


class TuiCommand(msgspec.Struct):
    command: str


class TuiToast(msgspec.Struct, omit_defaults=True):
    message: str
    variant: Literal["info", "success", "warning", "error"]
    title: str | None = None
    duration: Annotated[int, msgspec.Meta(gt=0)] | None = None


class TuiSession(msgspec.Struct):
    session_id: str = msgspec.field(name="sessionID")


class Location(msgspec.Struct):
    directory: str


class SecondNewSession(msgspec.Struct):
    """Those whose names begin so are of the second API."""

    id: str | None = None
    agent: str | None = None
    model: ModelWish | None = None
    location: Location | None = None


class SecondAgent(msgspec.Struct):
    agent: str


class SecondModel(msgspec.Struct):
    model: ModelWish


class SecondFile(msgspec.Struct):
    uri: str
    name: str | None = None

    def attachment(self) -> dict[str, Any]:
        """As it is told, with the type that its name or its data URL gives it."""
        given = self.uri.removeprefix("data:").partition(",")[0].partition(";")[0] if self.uri[:5] == "data:" else None
        mime = given or mimetypes.guess_type(self.uri)[0] or "text/plain"
        name = self.name or ("attachment" if given else unquote(self.uri.rsplit("/", 1)[-1]))
        return {"uri": self.uri, "mime": mime, "name": name}


class SecondPromptText(msgspec.Struct):
    text: str
    files: list[SecondFile] = []


class SecondPrompt(msgspec.Struct):
    prompt: SecondPromptText
    id: Annotated[str, msgspec.Meta(pattern="^msg_")] | None = None


class NewTerminal(msgspec.Struct):
    command: str | None = None
    args: list[str] = []
    cwd: str | None = None
    title: str | None = None
    env: dict[str, str] = {}


class TerminalChange(msgspec.Struct):
    title: str | None = None
    size: TerminalSize | None = None


_TUI_EVENTS: dict[str, type] = {
    "tui.prompt.append": TuiText,
    "tui.command.execute": TuiCommand,
    "tui.toast.show": TuiToast,
    "tui.session.select": TuiSession,
}


class TuiEvent(msgspec.Struct):
    type: Literal["tui.prompt.append", "tui.command.execute", "tui.toast.show", "tui.session.select"]
    properties: dict[str, Any]

    def read(self) -> Any:
        """Raises InvalidParams."""
        try:
            return msgspec.convert(self.properties, _TUI_EVENTS[self.type])
        except msgspec.ValidationError as error:
            raise InvalidParams(f"body: {error}") from None
