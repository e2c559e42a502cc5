from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sandbox_agent.core import frames
from sandbox_agent.core.echo import Echo


def prompt(*blocks: dict[str, Any]) -> bytes:
    return frames.request(b"1", "session/prompt", {"sessionId": "s", "prompt": list(blocks)})


def chunk(block: Any) -> bytes:
    update = {"sessionUpdate": "user_message_chunk", "content": block}
    return frames.notification("session/update", {"sessionId": "s", "update": update})


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


@given(st.text(min_size=1), st.lists(st.integers(0, 50), max_size=4))
def test_a_prompt_that_comes_back_in_any_pieces_is_an_echo_and_comes_back_once(words: str, cuts: list[int]) -> None:
    echo = Echo(prompt(text(words)))
    ends = sorted({0, len(words), *(min(cut, len(words)) for cut in cuts)})
    pieces = [words[start:end] for start, end in pairwise(ends)]
    said = [piece for piece in pieces if piece.strip()]
    assert all(echo.takes(chunk(text(piece))) for piece in said)
    if said:
        assert not echo.takes(chunk(text(words)))


def test_other_words_in_the_users_name_are_no_echo() -> None:
    echo = Echo(prompt(text("deploy it")))
    assert not echo.takes(chunk(text("[expanded] run the deploy script")))
    assert echo.takes(chunk(text("deploy  it\n")))


def test_pictures_come_back_too() -> None:
    picture = {"type": "image", "mimeType": "image/png", "data": "AAAA"}
    echo = Echo(prompt(text("see"), picture))
    assert echo.takes(chunk(text("see")))
    assert echo.takes(chunk(picture))
    assert not echo.takes(chunk(picture))


def test_what_cannot_be_read_is_no_echo() -> None:
    assert not Echo(b"{}").takes(chunk(text("x")))
    assert not Echo(prompt(text("x"))).takes(chunk(7))
