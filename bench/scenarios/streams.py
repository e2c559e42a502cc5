"""Events from the agent to readers: many, to slow ones, one by one, and again after the fact."""

from __future__ import annotations

from bench import load
from bench.load import Figures
from bench.prompts import begin_prompts, run_prompt
from bench.servers import Server

TEXT = 100


class EventsLost(Exception):
    """A run of ours in which an event was lost or came twice: no figure is worth anything then."""


def flood(
    server: Server, *, sessions: int = 1, events: int, bytes_per_s: int = 0, stall_ms: int = 0, idle_ms: int = 1500
) -> Figures:
    """`events` from each session at once, each session with a reader of its own."""
    with server.running():
        conversations = [server.converse() for _ in range(sessions)]
        before, memory = server.cpu(), server.memory("VmHWM")
        with begin_prompts(server, conversations, f"flood {events} {TEXT}") as begin:
            figures = load.read_streams(
                server.port,
                [conversation.stream() for conversation in conversations],
                expected=events,
                begin=begin,
                idle_ms=idle_ms,
                bytes_per_s=bytes_per_s,
                stall_ms=stall_ms,
            )
        return {
            **_checked(server, figures, sessions * events),
            "cpu_us": (server.cpu() - before) / (sessions * events) * 1e6,
            "grown_mb": server.memory("VmHWM") - memory,
            "load_cpu_share": figures["cpu_s"] / figures["seconds"],
        }


def single_events(server: Server, *, events: int) -> Figures:
    """One event every two milliseconds: how long each is on its way."""
    with server.running():
        conversation = server.converse()
        with begin_prompts(server, [conversation], f"tick {events} 2000") as begin:
            figures = load.read_streams(server.port, [conversation.stream()], expected=events, begin=begin)
        _checked(server, figures, events)
        return {"p50_us": figures["p50_us"], "p99_us": figures["p99_us"]}


def replay(server: Server, *, events: int) -> Figures:
    """A reader that comes when everything has been said, and asks for all of it."""
    with server.running():
        conversation = server.converse()
        run_prompt(server, conversation, f"flood {events} {TEXT}")
        figures = load.read_streams(
            server.port, [conversation.stream(after=0)], expected=events, begin=lambda: None, idle_ms=1500
        )
        return {**_checked(server, figures, events), "rate": figures["events"] / max(figures["open_s"], 1e-4)}


def many_streams(server: Server, *, streams: int, events: int, seconds: float) -> Figures:
    """`streams` readers of as many sessions, each session sending `events` spread over the time."""
    with server.running():
        conversations = [server.converse() for _ in range(streams)]
        before, memory = server.cpu(), server.memory()
        text = f"tick {events} {int(seconds * 1e6 / events)}"
        with begin_prompts(server, conversations, text) as begin:
            figures = load.read_streams(
                server.port,
                [conversation.stream() for conversation in conversations],
                expected=events,
                begin=begin,
                idle_ms=3000,
            )
        _checked(server, figures, streams * events)
        return {
            "p50_us": figures["p50_us"],
            "p99_us": figures["p99_us"],
            "cpu_us": (server.cpu() - before) / (streams * events) * 1e6,
            "kb_each": (server.memory() - memory) / streams * 1024,
            "lost_share": figures["missing"] / (streams * events),
        }


def _checked(server: Server, figures: Figures, wanted: int) -> Figures:
    if server.is_ours and (figures["missing"] or figures["doubled"] or figures["gaps"]):
        raise EventsLost(f"{server.label}: {figures}")
    return {
        "rate": figures["events"] / max(figures["seconds"], 1e-9),
        "lost_share": figures["missing"] / wanted,
        "doubled": figures["doubled"],
    }
