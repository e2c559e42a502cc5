"""POST a request in a session, get the agent's answer in the body."""

from __future__ import annotations

from bench import load
from bench.load import Figures
from bench.servers import Server


def post_round_trips(server: Server, *, clients: int, seconds: float) -> Figures:
    with server.running():
        conversation = server.converse()
        requests = [conversation.echo(key) for key in range(clients)]
        load.post(server.port, requests, seconds=0.2)
        before = server.cpu()
        figures = load.post(server.port, requests, seconds=seconds)
        return {
            "rate": figures["requests"] / figures["seconds"],
            "p50_us": figures["p50_us"],
            "p99_us": figures["p99_us"],
            "cpu_us": (server.cpu() - before) / figures["requests"] * 1e6,
            "load_cpu_share": figures["cpu_s"] / figures["seconds"],
        }
