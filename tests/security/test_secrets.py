"""The token stays where it belongs: not in logs, errors, addresses, children, or what agents say."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from sandbox_agent.logs import JsonFormatter, TextFormatter
from sandbox_agent.redaction import RedactingFormatter, Redactor, secrets_of
from support.rpc import connected
from support.served import BEARER, TOKEN, client, served
from support.server import running_server

KEY = "sk-ant-very-secret-value"


def test_the_token_is_in_no_log_line_and_no_announcement(tmp_path: Path) -> None:
    flags = ["--token", TOKEN, "--log-level", "debug", "--access-log"]
    with served(tmp_path, *flags) as server, client(server) as http:
        http.get("/v1/health", headers=BEARER)
        http.get("/v1/health", params={"access_token": TOKEN, "ticket": TOKEN})
        http.get(f"/{TOKEN}", headers=BEARER)
        http.post("/sign-in", data={"token": TOKEN})
        http.get("/v1/health", headers={"Host": f"{TOKEN}.evil.com"})
        http.post("/v1/rpc", headers={**BEARER, "Content-Type": "application/json"}, content=TOKEN.encode())
        assert TOKEN not in server.url
    log = server.log_text()
    assert "GET /v1/health 200" in log
    assert TOKEN not in log


def test_the_access_log_has_no_query(tmp_path: Path) -> None:
    with served(tmp_path, "--access-log") as server, client(server) as http:
        http.get("/v1/fs/stat", params={"path": "/private/name"})
    log = server.log_text()
    assert "GET /v1/fs/stat" in log
    assert "private" not in log


def test_without_the_flag_requests_are_not_logged(tmp_path: Path) -> None:
    with served(tmp_path) as server, client(server) as http:
        http.get("/v1/health")
    assert "/v1/health" not in server.log_text()


def test_a_path_cannot_forge_a_log_line(tmp_path: Path) -> None:
    with served(tmp_path, "--access-log") as server, client(server) as http:
        http.get("/x%0d%0a2026-01-01 00:00:00 INFO forged%1b[31m")
    lines = server.log_text().splitlines()
    assert [line for line in lines if "forged" in line]
    assert not [line for line in lines if line.startswith("2026-01-01")]
    assert not [line for line in lines if "\x1b" in line]


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
def test_control_characters_do_not_reach_the_log(formatter: logging.Formatter) -> None:
    record = logging.LogRecord("n", logging.INFO, "f", 1, "a\nb\x1b[31m\x00%s", (KEY,), None)
    line = RedactingFormatter(formatter, Redactor([KEY])).format(record)
    assert line.isprintable()
    assert KEY not in line
    assert "[redacted]" in line


def test_secrets_are_told_by_their_names() -> None:
    environ = {"ANTHROPIC_API_KEY": "aaaaaa", "GITHUB_TOKEN": "bbbbbb", "PATH": "cccccc", "DB_PASSWORD": "dddddd"}
    assert sorted(secrets_of(environ)) == ["aaaaaa", "bbbbbb", "dddddd"]


def test_a_secret_that_contains_another_is_taken_out_whole() -> None:
    assert Redactor(["secret", "secret-and-more"]).clean("x secret-and-more y") == "x [redacted] y"


async def test_children_see_neither_the_token_nor_the_database_nor_loaders(tmp_path: Path) -> None:
    env = {
        "SANDBOX_AGENT_TOKEN": TOKEN,
        "SANDBOX_AGENT_DATABASE_URL": "postgres://secret",
        "NODE_OPTIONS": "--require=/tmp/evil.js",
        "PYTHONPATH": "/tmp/evil",
        "GITHUB_TOKEN": "unrelated",
    }
    async with running_server(tmp_path, env=env) as server, connected(server.url, token=TOKEN) as rpc:
        session = await rpc.new_session(str(tmp_path))
        async with rpc.stream() as events:
            for name in [*env, "LD_PRELOAD"]:
                await rpc.prompt(session, f"env {name}")
            await rpc.prompt(session, "env HOME")
            await events.wait_until(lambda seen: "HOME=" in seen.text())
            said = events.text()
            await rpc.prompt(session, "terminal env")
            await events.wait_until(lambda seen: "PATH=" in seen.text())
            terminal = events.text()
    assert TOKEN not in said + terminal
    assert "postgres://secret" not in said + terminal
    assert "evil" not in said + terminal
    assert "unrelated" not in said + terminal


async def test_secrets_are_taken_out_of_what_an_agent_wrote_to_stderr(tmp_path: Path) -> None:
    config = (
        "[agents.leaky]\n"
        'command = ["/bin/sh", "-c", "echo the key is $MY_API_KEY >&2; exec \\"$0\\" -m sandbox_agent.mock_agent", '
        f'"{__import__("sys").executable}"]\n'
        f'env = {{ MY_API_KEY = "{KEY}" }}\n'
    )
    async with running_server(tmp_path, config=config) as server, connected(server.url, "leaky") as rpc:
        answer = await rpc.http.get("/v1/agents/leaky/logs", params={"tail": 5})
        log = server.log_text()
    assert answer.json()["lines"] == ["the key is [redacted]"]
    assert KEY not in log
    assert "the key is [redacted]" in log
