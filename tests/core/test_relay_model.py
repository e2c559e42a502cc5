"""Clients, an agent and crashes in any order: what must hold at every step."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import count
from typing import Any

from hypothesis import Phase as Phases
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sandbox_agent.core.ids import SessionId
from sandbox_agent.core.methods import ELICITATION, PERMISSION
from sandbox_agent.core.permission_policy import ASK
from sandbox_agent.core.session import Client, Phase
from sandbox_agent.errors import AgentExited, SessionEnded
from support.relay import Wire, answer, client, note, refusal, request, update

CLIENTS = [
    client("a"),
    client("b", "fs/read_text_file", "terminal/create"),
    client("c", ELICITATION, "fs/read_text_file"),
]
clients = st.sampled_from(CLIENTS)
keys: st.SearchStrategy[Any] = st.sampled_from([0, 1, -1, "1", "x", None, 1.5])
picks = st.integers(0, 50)
ASKS = [PERMISSION, ELICITATION, "_vendor/ask", "fs/read_text_file", "terminal/create"]


class Conversation(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.wire = Wire(queued_prompts=3)
        self.requests: dict[tuple[str, int], Any] = {}
        self.own: set[int] = set()
        self.sessions: list[str] = []
        self.attached: defaultdict[str, set[str]] = defaultdict(set)
        self.prompted: defaultdict[str, list[str]] = defaultdict(list)
        self.asked: dict[str, str] = {}
        self.at_agent: list[dict[str, Any]] = []
        self.abandoned: list[dict[str, Any]] = []
        self.read = 0
        self.waking: list[str] = []
        self.lost: set[str] = set()
        """What the process has not taken up since the last one died: it cannot speak for it."""
        self.numbers = count(1)
        for session in ("s", "t"):
            call = self.wire.own("session/new")
            self.own.add(call)
            self.wire.agent(answer(call, {"sessionId": session}))
            self.sessions.append(session)
        self.read = len(self.wire.sent)

    def agent_reads(self) -> None:
        """Take what was sent: requests wait at the agent, answers settle what it asked."""
        closing = {session.id for session in self.wire.relay.sessions.values() if session.phase is Phase.CLOSING}
        for message in self.wire.sent[self.read :]:
            if "method" not in message:
                assert message["id"] in self.asked, "an answer to nothing, or a second one"
                del self.asked[message["id"]]
            elif "id" in message:
                self.at_agent.append(message)
                if message["method"] == "session/prompt":
                    assert message["params"]["sessionId"] not in closing, "a prompt began while its session closed"
                    text = message["params"]["prompt"][0]["text"]
                    queued = self.prompted[message["params"]["sessionId"]]
                    assert text in queued, "a prompt that was not next"
                    del queued[: queued.index(text) + 1]
        self.read = len(self.wire.sent)
        for session in self.wire.woken:
            if session not in self.waking:  # it may be asked for again meanwhile: it is taken up once for all who ask
                self.waking.append(session)
        self.wire.woken.clear()

    def session(self, pick: int) -> str:
        return self.sessions[pick % len(self.sessions)]

    @rule()
    def create(self) -> None:
        self.own.add(self.wire.own("session/new"))

    @rule(one=clients, key=keys, pick=picks)
    def prompt(self, one: Client, key: Any, pick: int) -> None:
        session, text = self.session(pick), f"p{next(self.numbers)}"
        if self.wire.relay.sessions[SessionId(session)].phase is not Phase.ENDED:
            self.attached[session].add(one.id)
            self.prompted[session].append(text)
        self.requests[one.id, self.wire.prompt(one, key, session, text)] = key

    @rule(one=clients, key=keys)
    def call_agent(self, one: Client, key: Any) -> None:
        self.requests[one.id, self.wire.call(one, request(key, "_vendor/call"))] = key

    @rule(one=clients, key=keys, pick=picks)
    def call_session(self, one: Client, key: Any, pick: int) -> None:
        self.requests[one.id, self.wire.call(one, request(key, "_vendor/call", sessionId=self.session(pick)))] = key

    @rule(one=clients, pick=picks)
    def attach(self, one: Client, pick: int) -> None:
        self.attached[self.session(pick)].add(one.id)
        self.wire.attach(one, self.session(pick))

    @rule(one=clients, pick=picks)
    def detach(self, one: Client, pick: int) -> None:
        self.attached[self.session(pick)].discard(one.id)
        self.wire.detach(one, self.session(pick))

    @rule(one=clients)
    def close(self, one: Client) -> None:
        for attached in self.attached.values():
            attached.discard(one.id)
        self.wire.apply(self.wire.relay.connection_closed(one.id))

    @rule(pick=picks)
    def cancel(self, pick: int) -> None:
        session = SessionId(self.session(pick))
        self.wire.notify(note("session/cancel", sessionId=session))
        assert not self.wire.relay.sessions[session].queue
        assert all(
            ask.method not in {PERMISSION, ELICITATION} for ask in self.wire.relay.sessions[session].asks.values()
        )

    @rule(one=clients, key=keys)
    def take_back(self, one: Client, key: Any) -> None:
        self.wire.take_back(one, key)

    @precondition(lambda self: self.at_agent)
    @rule(pick=picks, is_error=st.booleans(), twice=st.booleans())
    def agent_answers(self, pick: int, *, is_error: bool, twice: bool) -> None:
        message = self.at_agent.pop(pick % len(self.at_agent))
        result: dict[str, Any] = {}
        if message["method"] == "session/new" and not is_error:
            result["sessionId"] = f"s{next(self.numbers)}"
            self.sessions.append(result["sessionId"])
        line = refusal(message["id"]) if is_error else answer(message["id"], result)
        self.wire.agent(*[line] * (1 + twice))

    @rule(chosen=st.lists(picks, min_size=1, max_size=4), has_garbage=st.booleans())
    def agent_updates(self, chosen: list[int], *, has_garbage: bool) -> None:
        before = {one.id: len(self.wire.events[one.id]) for one in CLIENTS}
        updates = [(self.session(pick), f"u{next(self.numbers)}") for pick in chosen]
        lines: list[Any] = [update(text, session) for session, text in updates]
        self.wire.agent(*lines[:1], *([b"garbage"] if has_garbage else []), *lines[1:])
        for one in CLIENTS:
            told = [(session, text) for session, text in updates if session not in self.lost]
            expected = [update(text, session) for session, text in told if one.id in self.attached[session]]
            assert self.wire.events[one.id][before[one.id] :] == expected

    @rule(pick=picks, method=st.sampled_from(ASKS))
    def agent_asks(self, pick: int, method: str) -> None:
        key = f"ask-{next(self.numbers)}"
        self.asked[key] = self.session(pick)
        self.wire.agent(request(key, method, sessionId=self.session(pick)))

    @precondition(lambda self: self.asked)
    @rule(pick=picks)
    def agent_withdraws(self, pick: int) -> None:
        key = sorted(self.asked)[pick % len(self.asked)]
        self.wire.agent(note("$/cancel_request", requestId=key))
        del self.asked[key]

    @rule(one=clients, pick=picks, is_unknown=st.booleans())
    def client_answers(self, one: Client, pick: int, *, is_unknown: bool) -> None:
        seen = [event["id"] for event in self.wire.events[one.id] if "id" in event and "method" in event]
        if seen:
            key = seen[pick % len(seen)]
            self.wire.answer(one, refusal(key, -32601) if is_unknown else answer(key))

    @precondition(lambda self: self.wire.served)
    @rule()
    def host_serves(self) -> None:
        self.wire.apply(self.wire.relay.served(self.wire.served.pop(0).ask, b'"result":{}'))

    @precondition(lambda self: self.waking)
    @rule(is_ok=st.booleans())
    def wake(self, *, is_ok: bool) -> None:
        session, relay = SessionId(self.waking.pop(0)), self.wire.relay
        relay.wake(session, ASK, session)
        if is_ok:
            self.lost.discard(session)
        else:
            self.lost.add(session)  # what comes of it now may be its replay
        self.wire.apply(relay.woken(session) if is_ok else relay.wake_failed(session, SessionEnded("gone")))

    @rule(pick=picks)
    def begin_to_close(self, pick: int) -> None:
        """The process is asked to let a session go: nothing begins in it before that is decided."""
        session = SessionId(self.session(pick))
        if self.wire.relay.sessions[session].is_live:
            self.wire.relay.closing(session)

    @rule(pick=picks)
    def keep(self, pick: int) -> None:
        self.wire.apply(self.wire.relay.kept(SessionId(self.session(pick))))

    @rule(pick=picks, is_for_good=st.booleans())
    def close_session(self, pick: int, *, is_for_good: bool) -> None:
        """`session/close`, or the end: whoever waits is answered, and what the agent says later changes nothing."""
        session, relay = SessionId(self.session(pick)), self.wire.relay
        gone = SessionEnded("closed")
        self.wire.apply(relay.end(session, gone) if is_for_good else relay.release(session, gone))
        self.left_behind(session)
        assert not relay.sessions[session].queue
        assert relay.sessions[session].running is None

    @precondition(lambda self: len(self.sessions) > 2)
    @rule(pick=picks)
    def delete(self, pick: int) -> None:
        session = SessionId(self.sessions.pop(2 + pick % (len(self.sessions) - 2)))
        self.wire.apply(self.wire.relay.forget(session, SessionEnded("deleted")))
        self.left_behind(session)
        self.attached.pop(session, None)

    def left_behind(self, session: SessionId) -> None:
        """What the agent still works on although nobody waits for it any more, and what it need not wait for."""
        self.agent_reads()
        self.abandoned += [m for m in self.at_agent if m["params"].get("sessionId") == session]
        self.at_agent = [m for m in self.at_agent if m not in self.abandoned]
        self.prompted[session].clear()
        self.waking = [name for name in self.waking if name != session]

    @precondition(lambda self: self.abandoned)
    @rule()
    def agent_answers_too_late(self) -> None:
        replies = len(self.wire.replies)
        self.wire.agent(answer(self.abandoned.pop(0)["id"], {"stopReason": "end_turn"}))
        assert len(self.wire.replies) == replies

    @rule()
    def crash(self) -> None:
        self.wire.exit(AgentExited("dead", exitCode=1))
        self.agent_reads()
        self.at_agent.clear()
        self.abandoned.clear()
        self.asked.clear()
        self.waking.clear()
        self.lost.update(self.sessions)
        assert self.wire.relay.waiting == len(self.wire.relay.asks) == 0
        assert {(who, ticket) for who, ticket, _ in self.wire.replies} == set(self.requests)
        assert set(self.wire.resolved) == self.own

    @invariant()
    def every_answer_goes_to_its_request_under_its_id_and_only_once(self) -> None:
        for who, ticket, message in self.wire.replies:
            assert self.requests[who, ticket] == message["id"]
        assert len({(who, ticket) for who, ticket, _ in self.wire.replies}) == len(self.wire.replies)

    @invariant()
    def one_prompt_at_a_time_runs_in_a_session(self) -> None:
        self.agent_reads()
        running = Counter(m["params"]["sessionId"] for m in self.at_agent if m["method"] == "session/prompt")
        assert all(number == 1 for number in running.values())

    @invariant()
    def what_is_not_answered_is_at_the_agent_or_in_a_queue(self) -> None:
        queued = sum(len(session.queue) for session in self.wire.relay.sessions.values())
        assert len(self.at_agent) == self.wire.relay.waiting
        assert len(self.requests) + len(self.own) == len(self.wire.replies) + len(self.wire.resolved) + (
            len(self.at_agent) + queued
        )

    @invariant()
    def what_the_agent_asked_is_open_until_it_is_answered(self) -> None:
        assert len(self.wire.relay.asks) == len(self.asked)

    def teardown(self) -> None:
        self.crash()


TestConversation = Conversation.TestCase
TestConversation.settings = settings(
    max_examples=100,
    stateful_step_count=50,
    deadline=None,
    # Shrinking takes minutes, in which the time-out would come and speak of itself only: a failure shows all its steps.
    phases=[Phases.explicit, Phases.reuse, Phases.generate],
)
