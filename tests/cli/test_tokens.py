"""`sandbox-agent tokens`, and what its tokens are good for."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from support.command import Shell
from support.served import TOKEN, served

pytestmark = pytest.mark.timeout(180)  # several processes, one after the other


def test_a_token_that_was_added_works_until_it_is_revoked(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    added = shell.run("tokens", "add", "ann", "--right", "read", "--expires", "30d")
    assert added.returncode == 0, added.stderr
    token = added.stdout.decode().strip()
    assert b"restarted" in added.stderr
    with served(tmp_path, "--token", TOKEN) as server:
        bearer = {"Authorization": f"Bearer {token}"}
        assert httpx.get(f"{server.url}/v1/sessions", headers=bearer, trust_env=False).status_code == 200
        refused = shell.run("run", "--agent", "mock", "--endpoint", server.url, "--token", token, "hello")
        assert refused.returncode != 0
        assert b"needs the right 'prompt'" in refused.stderr
        assert shell.run("tokens", "revoke", "ann").stdout == b"revoked ann\n"
        assert httpx.get(f"{server.url}/v1/sessions", headers=bearer, trust_env=False).status_code == 401


def test_tokens_are_listed_without_their_secrets(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    made = json.loads(shell.run("tokens", "add", "ann", "--expires", "2099-01-31", "--json").stdout)
    assert made["right"] == "prompt"
    assert made["expiresAt"].startswith("2099-01-31T00:00:00")
    listed = shell.run("tokens", "list", "--json").stdout
    assert made["token"].encode() not in listed
    (told,) = json.loads(listed)
    assert (told["name"], told["right"], told["isExpired"]) == ("ann", "prompt", False)
    assert b"ann" in shell.run("tokens", "list").stdout


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    past = shell.run("tokens", "add", "ann", "--expires", "2001-01-01")
    assert (past.returncode, b"in the past" in past.stderr) == (2, True)
    missing = shell.run("tokens", "revoke", "ann")
    assert (missing.returncode, b"no token named 'ann'" in missing.stderr) == (5, True)
    assert shell.run("tokens", "add", "ann").returncode == 0
    started = shell.run("server", "--port", "0", "--no-token")
    assert started.returncode != 0
    assert b"has named tokens" in started.stderr
