"""The sessions that are open in this process, and the turns that run in them."""

from __future__ import annotations

import asyncio
import itertools
import traceback
import uuid
from typing import TYPE_CHECKING, Any

import msgspec

from sandbox_agent.mock_agent import params
from sandbox_agent.mock_agent.client import Client
from sandbox_agent.mock_agent.params import invalid
from sandbox_agent.mock_agent.quirks import Quirks
from sandbox_agent.mock_agent.session import CONFIG, VERBOSE, Session
from sandbox_agent.mock_agent.state import StateFolder
from sandbox_agent.mock_agent.turn import Misuse, Turn, TurnCancelled
from sandbox_agent.mock_agent.version2 import (
    ONLY_HERE,
    spoken_answer,
    spoken_commands,
    spoken_options,
    state,
)
from sandbox_agent.mock_agent.wire import (
    AUTH_REQUIRED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    RESOURCE_NOT_FOUND,
    Refusal,
    RpcError,
)
from sandbox_agent.mock_agent.words import WORDS, Command, parse_prompt
from sandbox_agent.mock_agent.words.talking import echo

if TYPE_CHECKING:
    from sandbox_agent.mock_agent.agent import Request

LOGIN = {"id": "mock-login", "name": "Log in", "description": "Always works"}
OWN_SUFFIX = "[fast]"
_REPLAY_BATCH = 200


class Conversations:
    """Handlers of `session/*`. One that returns an awaitable is answered when it is done, others at once."""

    def __init__(self, client: Client, state: StateFolder, quirks: Quirks) -> None:
        self._client = client
        self._state = state
        self._quirks = quirks
        self._open: dict[str, Session] = {}
        self._turns: dict[str, tuple[Turn, asyncio.Task[None]]] = {}
        self._counter = itertools.count(1)
        self._is_logged_in = False
        self._replays: set[asyncio.Future[None]] = set()
        self.endings: set[asyncio.Future[None]] = set()
        """Turns of version 2 whose end is still to be told; their prompts are answered already."""

    def authenticate(self, asked: params.Authenticate, request: Request) -> Any:
        if self._quirks.needs_auth and asked.method_id != LOGIN["id"]:
            raise invalid("methodId", f"unknown auth method {asked.method_id!r}; known: {LOGIN['id']}")
        self._is_logged_in = True
        return {}

    def create(self, asked: params.NewSession, request: Request) -> Any:
        if self._quirks.needs_auth and not self._is_logged_in:
            raise RpcError(AUTH_REQUIRED, "Authentication required")
        session = Session(session_id=self._new_id(), cwd=asked.cwd)
        session.touch()
        return self._introduce(session, request)

    async def load(self, asked: params.StoredSession, request: Request) -> Any:
        self._refuse_to_load()
        session = self._find(asked.session_id)
        if not self._quirks.late_replay:
            await self._replay(session)
            return self.resume(asked, request)
        answer = self.resume(asked, request)
        request.after_answer = [*request.after_answer, lambda: self._replay_later(session)]
        return answer

    def _replay_later(self, session: Session) -> None:
        task = asyncio.ensure_future(self._replay(session))
        self._replays.add(task)
        task.add_done_callback(self._replays.discard)

    async def _replay(self, session: Session) -> None:
        for number, turn in enumerate(list(session.turns), session.turn_count - len(session.turns) + 1):
            self._client.update(session.session_id, self._said(number, {"type": "text", "text": turn.prompt}))
            for index, update in enumerate(list(turn.updates), 1):
                if self._client.version == 2 or not _is_only_version_2(update):
                    self._client.update(session.session_id, update)
                if index % _REPLAY_BATCH == 0:
                    await self._client.stdout.drain()
            await self._client.stdout.drain()

    def _said(self, number: int, *blocks: dict[str, Any]) -> dict[str, Any]:
        """What the user said, in a replay; in version 2 live too."""
        named = {"messageId": f"user-{number}"}
        if self._client.version == 2:
            return {"sessionUpdate": "user_message", **named, "content": list(blocks)}
        return {"sessionUpdate": "user_message_chunk", "content": blocks[0], **named}

    async def resume_replaying(self, asked: params.ResumeSession, request: Request) -> Any:
        """`session/resume` of version 2: with a replay if it is asked for, and always with the state."""
        self._refuse_to_load()
        session = self._find(asked.session_id)
        if asked.replay_from is not None:
            kind = asked.replay_from.get("type")
            if kind != "start":
                raise invalid("replayFrom", f"unknown cursor {kind!r}; known: start")
            await self._replay(session)
        self._client.update(session.session_id, state("running" if asked.session_id in self._turns else "idle"))
        return self.resume(params.StoredSession(asked.session_id, asked.cwd, asked.mcp_servers), request)

    def resume(self, asked: params.StoredSession, request: Request) -> Any:
        self._refuse_to_load()
        session = self._find(asked.session_id)
        session.cwd = asked.cwd
        answer = self._introduce(session, request)
        del answer["sessionId"]
        return answer

    def fork(self, asked: params.StoredSession, request: Request) -> Any:
        session = msgspec.json.decode(msgspec.json.encode(self._find(asked.session_id)), type=Session)
        session.session_id = self._new_id()
        session.cwd = asked.cwd
        session.touch()
        return self._introduce(session, request)

    async def close(self, asked: params.OneSession, request: Request) -> Any:
        self._require_open(asked.session_id)
        await self._end_turn(asked.session_id)
        self._open.pop(asked.session_id, None)
        return {}

    async def delete(self, asked: params.OneSession, request: Request) -> Any:
        await self._end_turn(asked.session_id)
        self._open.pop(asked.session_id, None)
        self._state.delete(asked.session_id)
        return {}

    def list_page(self, asked: params.ListSessions, request: Request) -> Any:
        try:
            sessions, cursor = self._state.page(asked.cwd, asked.cursor)
        except ValueError as error:
            raise invalid("cursor", str(error)) from None
        return {"sessions": sessions} if cursor is None else {"sessions": sessions, "nextCursor": cursor}

    def prompt(self, asked: params.Prompt, request: Request) -> Any:
        session = self._require_open(asked.session_id)
        if asked.session_id in self._turns:
            raise RpcError(INVALID_REQUEST, "This session is busy with another prompt", {"sessionId": asked.session_id})
        text = "\n".join(block["text"] for block in asked.prompt if block["type"] == "text")
        turn = Turn(session, session.begin_turn(text), request.id, self._client, self._quirks)
        turn.blocks = asked.prompt
        if self._quirks.echo_prompts:
            self._echo(session, asked.prompt)
        self._state.save(session)
        task = asyncio.ensure_future(_run_commands(turn, parse_prompt(text)))
        self._turns[asked.session_id] = turn, task
        if self._client.version == 2:
            return self._acknowledge(turn, task)
        request.session_id = asked.session_id
        request.after_answer = turn.after_answer
        return self._follow_turn(turn, task)

    def _acknowledge(self, turn: Turn, task: asyncio.Task[None]) -> Any:
        """Version 2 answers a prompt when it is taken up, and tells of its end as a state."""
        said = self._said(turn.number, *turn.blocks)
        turn.tell(said)
        turn.tell(state("running"))
        ending = asyncio.ensure_future(self._tell_end(turn, task))
        self.endings.add(ending)
        ending.add_done_callback(self.endings.discard)
        return {"messageId": said["messageId"]}

    async def _tell_end(self, turn: Turn, task: asyncio.Task[None]) -> None:
        try:
            ended = await self._follow_turn(turn, task)
        except RpcError as error:
            ended = {"stopReason": "error", "error": error.body()}
        except Exception as error:  # noqa: BLE001 (a task's boundary: the turn ends with what a word got wrong)
            traceback.print_exception(error)
            body = {"code": INTERNAL_ERROR, "message": f"{type(error).__name__}: {error}"}
            ended = {"stopReason": "error", "error": body}
        turn.tell(state("idle", **ended))
        for act in turn.after_answer:
            act()

    def _echo(self, session: Session, prompt: list[dict[str, Any]]) -> None:
        for block in prompt:
            text = block.get("text", "")
            parts = [text[: len(text) // 2], text[len(text) // 2 :]] if block["type"] == "text" else []
            for piece in [{**block, "text": part} for part in parts if part] or [block]:
                said = {"sessionUpdate": "user_message_chunk", "content": piece, "messageId": "user-echo"}
                self._client.update(session.session_id, said)

    def cancel(self, session_id: str) -> None:
        if session_id in self._turns:
            turn, task = self._turns[session_id]
            turn.cancel(task)

    def cancel_all(self) -> None:
        for _, task in self._turns.values():
            task.cancel()

    def set_mode(self, asked: params.SetMode, request: Request) -> Any:
        self._choose(asked.session_id, "mode", asked.mode_id, field="modeId")
        return {}

    def set_model(self, asked: params.SetModel, request: Request) -> Any:
        if self._quirks.own_model_ids:
            model = asked.model_id.removesuffix(OWN_SUFFIX)
            if model == asked.model_id:
                raise invalid("modelId", f"{asked.model_id!r} does not end with {OWN_SUFFIX}")
            self._choose(asked.session_id, "model", model, field="modelId")
            return {}
        self._choose(asked.session_id, "model", asked.model_id, field="modelId")
        return {}

    def set_config_option(self, asked: params.SetConfigOption, request: Request) -> Any:
        session = self._require_open(asked.session_id)
        if asked.config_id not in CONFIG:
            raise invalid("configId", f"unknown option {asked.config_id!r}; known: {', '.join(CONFIG)}")
        self._choose(asked.session_id, asked.config_id, asked.value, field="value")
        return {"configOptions": session.describe_config()}

    def set_option(self, asked: params.SetOption, request: Request) -> Any:
        """`session/set_config_option` of version 2, which has booleans too."""
        session = self._require_open(asked.session_id)
        if asked.config_id == VERBOSE:
            if not isinstance(asked.value, bool):
                raise invalid("value", f"must be true or false, not {asked.value!r}")
            session.is_verbose = asked.value
            self._state.save(session)
            self._tell_options(session)
        elif asked.config_id in CONFIG and isinstance(asked.value, str):
            self._choose(asked.session_id, asked.config_id, asked.value, field="value")
        else:
            known = ", ".join([*CONFIG, VERBOSE])
            raise invalid("configId", f"unknown option {asked.config_id!r}, or a wrong value; known: {known}")
        return {"configOptions": spoken_options(self._options(session))}

    def _options(self, session: Session) -> list[dict[str, Any]]:
        options = session.describe_config()
        return [*options, session.describe_verbose()] if self._client.version == 2 else options

    def _tell_options(self, session: Session) -> None:
        told = {"sessionUpdate": "config_option_update", "configOptions": self._options(session)}
        self._client.update(session.session_id, told)

    async def _follow_turn(self, turn: Turn, task: asyncio.Task[None]) -> Any:
        session = turn.session
        await asyncio.wait({task})
        del self._turns[session.session_id]
        if session.title is None:
            session.title = _make_title(session.prompts[-1])
            info = {
                "sessionUpdate": "session_info_update",
                "title": session.title,
                "updatedAt": session.updated_at,
            }
            self._client.update(session.session_id, info)
        session.touch()
        self._state.save(session)
        if task.cancelled():
            return {"stopReason": "cancelled"}
        error = task.exception()
        if isinstance(error, TurnCancelled):
            return {"stopReason": "cancelled"}
        if error is not None:
            raise error
        return {"stopReason": "end_turn"}

    async def _end_turn(self, session_id: str) -> None:
        if session_id in self._turns:
            _, task = self._turns[session_id]
            task.cancel()
            await asyncio.wait({task})

    def _introduce(self, session: Session, request: Request) -> dict[str, Any]:
        self._open[session.session_id] = session
        self._state.save(session)
        if self._quirks.early_updates:
            self._tell_commands(session)
        else:
            request.after_answer = [lambda: self._tell_commands(session)]
        answer: dict[str, Any] = {"sessionId": session.session_id}
        if not self._quirks.no_set_mode:
            answer["modes"] = session.describe_modes()
        if self._quirks.legacy_models or self._quirks.dead_models or self._quirks.own_model_ids:
            answer["models"] = session.describe_models(OWN_SUFFIX if self._quirks.own_model_ids else "")
        if not self._quirks.legacy_models:
            answer["configOptions"] = self._options(session)
        if self._client.version == 2:
            return {**spoken_answer(answer), "availableCommands": spoken_commands(_commands())}
        return answer

    def _tell_commands(self, session: Session) -> None:
        told = {"sessionUpdate": "available_commands_update", "availableCommands": _commands()}
        self._client.update(session.session_id, told)

    def _choose(self, session_id: str, key: str, value: str, *, field: str) -> None:
        session = self._require_open(session_id)
        values = CONFIG[key][2]
        if value not in values:
            raise invalid(field, f"unknown {key} {value!r}; known: {', '.join(values)}")
        if session.config[key] == value:
            return
        session.config[key] = value
        self._state.save(session)
        if key == "mode":
            self._client.update(session_id, {"sessionUpdate": "current_mode_update", "currentModeId": value})
        if not self._quirks.legacy_models:
            self._tell_options(session)

    def _refuse_to_load(self) -> None:
        if self._quirks.fail_load:
            raise RpcError(INTERNAL_ERROR, "Internal error", {"details": "sessions cannot be loaded (--fail-load)"})

    def _find(self, session_id: str) -> Session:
        """An open or stored session. Raises RpcError."""
        session = self._open.get(session_id) or self._state.load(session_id)
        if session is None:
            raise _unknown(session_id)
        return session

    def _require_open(self, session_id: str) -> Session:
        session = self._open.get(session_id)
        if session is None:
            raise _unknown(session_id)
        return session

    def _new_id(self) -> str:
        if not self._quirks.counter_sessions:
            return f"mock-{uuid.uuid4().hex}"
        return next(name for n in self._counter if (name := f"20261115_{n}") not in self._open)


async def _run_commands(turn: Turn, commands: list[Command]) -> None:
    for command in commands:
        try:
            if command.word is None:
                await echo(turn, command.rest)
            else:
                await command.word.run(turn, command.rest)
        except Misuse as error:
            turn.say(f"{error}; usage: {command.word.usage if command.word else 'text'}")
        except Refusal as error:
            turn.say(f"The client refused: {error.message} ({error.code})")
        await turn.client.stdout.drain()


def _commands() -> list[dict[str, Any]]:
    return [
        {"name": word.name, "description": word.says} | ({"input": {"hint": word.arguments}} if word.arguments else {})
        for word in WORDS.values()
    ]


def _is_only_version_2(update: msgspec.Raw) -> bool:
    return msgspec.json.decode(update)["sessionUpdate"] in ONLY_HERE


def _make_title(prompt: str) -> str:
    first_line = prompt.strip().split("\n")[0]
    return first_line[:60] or "New session"


def _unknown(session_id: str) -> RpcError:
    return RpcError(RESOURCE_NOT_FOUND, f"Unknown session: {session_id}", {"sessionId": session_id})
