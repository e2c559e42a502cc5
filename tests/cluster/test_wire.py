"""Nodes of neighbouring releases understand what goes over a link."""

from __future__ import annotations

import msgspec

from sandbox_agent.hub.cluster import wire


class _RunOf02(msgspec.Struct, frozen=True, array_like=True):
    count: int
    agent: str = ""
    session: str | None = None
    sequence: int = 0


class _ToldOf02(msgspec.Struct, frozen=True, array_like=True, tag="told"):
    channel: int
    runs: list[_RunOf02]


def test_what_a_node_of_0_2_tells_is_read() -> None:
    head, body = wire.decode(b'["told",1,[[2,"mock","s",3],[1,"","s",0]]]\none\ntwo\nthree')
    assert head == wire.Told(1, [wire.Run(2, "mock", "s", 3), wire.Run(1, "", "s")])
    assert body == b"one\ntwo\nthree"


def test_a_node_of_0_2_takes_what_is_retold_for_lines_without_a_place() -> None:
    told = wire.Told(1, [wire.Run(2, "mock", "s", entry=7, left=1), wire.Run(1, "mock", "s", 8)])
    head, _, _ = wire.encode(told).partition(b"\n")
    assert msgspec.json.decode(head, type=_ToldOf02).runs == [_RunOf02(2, "mock", "s"), _RunOf02(1, "mock", "s", 8)]
