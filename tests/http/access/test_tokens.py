"""The file of named tokens, and a token that expires while its holder is there."""

from __future__ import annotations

import asyncio
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sandbox_agent.core.users import OWNER, Right, User, signed
from sandbox_agent.errors import ConfigError, Conflict, InvalidParams, NotFound
from sandbox_agent.http.access.attendance import Attendance
from sandbox_agent.http.access.auth import Credentials
from sandbox_agent.http.access.tokens import FILE, NamedTokens, TokenFile
from sandbox_agent.http.asgi.messages import Message, Receive, Scope, Send


def test_a_token_is_kept_as_a_hash_that_only_its_owner_reads(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "data")
    token = file.add("ann", Right.PROMPT)
    content = file.path.read_text()
    assert token not in content
    assert token.removeprefix("sat_") not in content
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert [found.name for found in tmp_path.joinpath("data").iterdir() if found.suffix == ".new"] == []


def test_who_holds_a_token_is_known_until_it_is_revoked(tmp_path: Path) -> None:
    file = TokenFile(tmp_path)
    ann, bob = file.add("ann", Right.READ), file.add("bob", Right.ADMIN)
    named = NamedTokens(file)
    found = named.find(ann.encode())
    assert found is not None
    assert (found.name, found.right) == ("ann", Right.READ)
    assert named.find(bob.encode()) != found
    for wrong in (ann[:-1], ann + "x", "", "sat_", ann.upper()):
        assert named.find(wrong.encode()) is None
    file.revoke("ann")
    assert named.find(ann.encode()) is None
    assert not named.is_current(found)
    again = file.add("ann", Right.READ)
    assert not named.is_current(found), "another token under the name does not revive the first"
    assert named.find(again.encode()) not in (None, found)


@pytest.mark.parametrize("name", ["", "a b", "-a", "a/b", "x" * 65, "é", "a\n"])
def test_a_name_that_could_not_be_shown_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidParams, match="invalid name"):
        TokenFile(tmp_path).add(name, Right.READ)


def test_a_name_is_given_once_and_what_is_not_there_cannot_be_revoked(tmp_path: Path) -> None:
    file = TokenFile(tmp_path)
    file.add("ann", Right.READ)
    with pytest.raises(Conflict):
        file.add("ann", Right.ADMIN)
    with pytest.raises(NotFound):
        file.revoke("bob")


def test_those_who_add_tokens_at_the_same_moment_lose_none(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as several:
        made = list(several.map(lambda number: TokenFile(tmp_path).add(f"user{number}", Right.READ), range(24)))
    named = NamedTokens(TokenFile(tmp_path))
    assert all(named.find(token.encode()) is not None for token in made)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version":2,"tokens":[]}', '{"tokens":[{"name":"a"}]}', "\xff"])
def test_a_file_that_is_not_understood_is_an_error_at_start(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content, encoding="latin-1")
    with pytest.raises(ConfigError, match="damaged"):
        NamedTokens(TokenFile(tmp_path))


def test_revoking_the_last_token_does_not_open_the_server(tmp_path: Path) -> None:
    file = TokenFile(tmp_path)
    assert not Credentials(None, named=NamedTokens(file)).is_needed
    token = file.add("ann", Right.ADMIN)
    file.revoke("ann")
    credentials = Credentials(None, named=NamedTokens(file))
    assert credentials.is_needed
    assert credentials.bearer(f"Bearer {token}".encode()) is None
    assert credentials.bearer(b"Bearer ") is None


@pytest.mark.promise("P-security-16")
async def test_a_token_that_expires_ends_the_stream_of_its_holder(tmp_path: Path) -> None:
    now = [1000.0]
    file = TokenFile(tmp_path, clock=lambda: now[0])
    token = file.add("ann", Right.READ, expires=2000.0)
    named = NamedTokens(file, clock=lambda: now[0])
    user = named.find(token.encode())
    assert user is not None
    ended: list[User] = []

    async def note(user: User) -> None:
        ended.append(user)

    sent: list[Message] = []
    is_open = asyncio.Event()

    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        is_open.set()
        while (await receive())["type"] != "http.disconnect":
            pass

    async def silence() -> Message:
        await asyncio.Event().wait()
        raise AssertionError("nothing ever comes")

    async def keep(message: Message) -> None:
        sent.append(message)

    attendance = Attendance(named, note)
    serving = asyncio.create_task(attendance.serve(user, stream, {"type": "http"}, silence, keep))
    await asyncio.wait_for(is_open.wait(), 30)
    now[0] = 2000.0
    assert named.find(token.encode()) is None
    await asyncio.wait_for(serving, 30)
    assert b"expired" in sent[-1]["body"]
    assert not sent[-1].get("more_body")
    assert ended == [user]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"method":"m"}', b'{"method":"m","params":{"_meta":{"sandboxagent.dev":{"user":"ann"}}}}'),
        (
            b'{"method":"m","params":{"a":1.50,"_meta":{"x":{},"sandboxagent.dev":{"turnId":"t","user":"forged"}}}}',
            b'{"method":"m","params":{"a":1.50,"_meta":{"x":{},"sandboxagent.dev":{"turnId":"t","user":"ann"}}}}',
        ),
        (b'{"id":1,"result":{}}', b'{"id":1,"result":{"_meta":{"sandboxagent.dev":{"user":"ann"}}}}'),
        (b'{"id":1,"result":null}', b'{"id":1,"result":null}'),
        (b'{"id":1,"error":{"code":1}}', b'{"id":1,"error":{"code":1}}'),
        (b'{"method":"m","params":[1]}', b'{"method":"m","params":[1]}'),
        (b'{"method":"m","params":{"_meta":3}}', b'{"method":"m","params":{"_meta":3}}'),
    ],
)
def test_what_a_user_says_is_signed_and_otherwise_kept_as_it_was(line: bytes, expected: bytes) -> None:
    assert signed(line, "ann") == expected
    assert signed(line, OWNER.name) is line
