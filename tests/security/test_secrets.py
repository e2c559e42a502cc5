"""The token stays where it belongs: not in logs, errors, addresses, children, or what agents say."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

import pytest

from sandbox_agent.logs import JsonFormatter, RedactingFormatter, TextFormatter
from sandbox_agent.redaction import Redactor, secrets_of
from support.rpc import connected
from support.served import BEARER, TOKEN, client, served
from support.server import running_server

KEY = "sk-ant-very-secret-value"


@pytest.mark.promise("P-security-4")
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


AWKWARD = ['with "quotes" inside', "with \\back\\slashes", "Schlüssel-äöü-値", "two\nlines and\ttabs"]


@pytest.mark.parametrize("secret", AWKWARD)
@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
@pytest.mark.parametrize("template", ["%s", "%r", "%a"])
@pytest.mark.promise("P-security-5")
def test_a_secret_that_needs_escapes_reaches_the_log_in_no_spelling(
    formatter: logging.Formatter, secret: str, template: str
) -> None:
    try:
        raise ValueError(secret)
    except ValueError as error:
        caught = (ValueError, error, error.__traceback__)
    record = logging.LogRecord("n", logging.INFO, "f", 1, f"before {template} after", (secret,), caught)
    line = RedactingFormatter(formatter, Redactor([secret])).format(record)
    assert "before [redacted] after" in line.replace("'", "")
    for spelling in (secret, json.dumps(secret)[1:-1], json.dumps(json.dumps(secret)[1:-1])[1:-1], repr(secret)[1:-1]):
        assert spelling not in line


@pytest.mark.parametrize("secret", AWKWARD)
def test_a_secret_is_taken_out_of_json_that_was_written_already(secret: str) -> None:
    for written in (json.dumps({"detail": secret}), json.dumps({"detail": secret}, ensure_ascii=False)):
        assert json.loads(Redactor([secret]).clean(written)) == {"detail": "[redacted]"}


def test_a_secret_that_was_cut_leaves_no_beginning() -> None:
    redactor = Redactor([KEY, "sk-ant-very-other"])
    for length in range(8, len(KEY)):
        assert redactor.clean("the key is " + KEY[:length]) == "the key is [redacted]"
    assert redactor.clean("the key is " + KEY[:12] + "\N{REPLACEMENT CHARACTER}") == "the key is [redacted]"
    assert redactor.clean("sk-ant-") == "sk-ant-", "so little is no secret yet"
    assert redactor.clean(KEY[:12] + " is not at the end") == KEY[:12] + " is not at the end"


async def test_a_key_that_an_agent_prints_across_the_cut_is_nowhere_in_the_log(tmp_path: Path) -> None:
    config = (
        "[agents.leaky]\n"
        'command = ["/bin/sh", "-c", "printf \\"%01985d%s\\\\n\\" 0 $MY_API_KEY >&2; exec \\"$0\\" -m '
        f'sandbox_agent.mock_agent", "{sys.executable}"]\n'
        f'env = {{ MY_API_KEY = "{KEY}" }}\n'
    )
    async with running_server(tmp_path, "--log-format", "json", config=config) as server:
        async with connected(server.url, "leaky") as rpc:
            told = (await rpc.http.get("/v1/agents/leaky/logs")).text
        log = server.log_text()
    assert "000[redacted]" in log
    assert KEY[:10] not in log + told


@pytest.mark.promise("P-security-4")
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
        f'"{sys.executable}"]\n'
        f'env = {{ MY_API_KEY = "{KEY}" }}\n'
    )
    async with running_server(tmp_path, config=config) as server, connected(server.url, "leaky") as rpc:
        answer = await rpc.http.get("/v1/agents/leaky/logs", params={"tail": 5})
        log = server.log_text()
    assert answer.json()["lines"] == ["the key is [redacted]"]
    assert KEY not in log
    assert "the key is [redacted]" in log
