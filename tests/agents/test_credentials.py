from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sandbox_agent.agents.credentials import Credential, find_credentials, mask, variable_for

NOW = 1_800_000_000.0
SOON, PAST = (NOW + 60) * 1000, (NOW - 60) * 1000
SECRET = "sk-test-0123456789-abcdef-secret"
FILES: list[tuple[str, str, Any, str, str]] = [
    ("claude", ".claude.json", {"primaryApiKey": SECRET}, "anthropic", "api_key"),
    ("claude", ".claude/.credentials.json", {"claudeAiOauth": {"accessToken": SECRET}}, "anthropic", "oauth"),
    ("codex", ".codex/auth.json", {"OPENAI_API_KEY": SECRET}, "openai", "api_key"),
    ("codex", ".codex/auth.json", {"OPENAI_API_KEY": None, "tokens": {"access_token": SECRET}}, "openai", "oauth"),
    ("opencode", ".local/share/opencode/auth.json", {"zen": {"type": "api", "key": SECRET}}, "zen", "api_key"),
    (
        *("opencode", ".local/share/opencode/auth.json"),
        {"anthropic": {"type": "oauth", "access": SECRET, "refresh": "r", "expires": PAST}},
        *("anthropic", "oauth"),
    ),
    ("gemini", ".gemini/oauth_creds.json", {"access_token": SECRET, "expiry_date": SOON}, "google", "oauth"),
    ("gemini", ".gemini/.env", f'export GEMINI_API_KEY="{SECRET}"\n', "google", "api_key"),
    ("pi", ".pi/agent/auth.json", {"groq": {"type": "api_key", "key": SECRET}}, "groq", "api_key"),
    ("amp", ".local/share/amp/secrets.json", {"apiKey@https://ampcode.com/": SECRET}, "amp", "api_key"),
]


def put(home: Path, name: str, content: Any) -> Path:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.mark.parametrize(("agent", "name", "content", "provider", "kind"), FILES)
def test_a_login_in_its_usual_file_is_found(
    agent: str, name: str, content: Any, provider: str, kind: str, tmp_path: Path
) -> None:
    path = put(tmp_path, name, content)
    [found] = find_credentials({}, tmp_path, agent=agent, reveal=True, now=NOW)
    assert found == Credential(agent=agent, provider=provider, source=str(path), kind=kind, value=SECRET)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("agent", "variable", "provider", "kind"),
    [
        ("claude", "ANTHROPIC_API_KEY", "anthropic", "api_key"),
        ("claude", "CLAUDE_CODE_OAUTH_TOKEN", "anthropic", "oauth"),
        ("codex", "OPENAI_API_KEY", "openai", "api_key"),
        ("gemini", "GEMINI_API_KEY", "google", "api_key"),
        ("opencode", "OPENROUTER_API_KEY", "openrouter", "api_key"),
        ("pi", "OPENAI_API_KEY", "openai", "api_key"),
        ("amp", "AMP_API_KEY", "amp", "api_key"),
    ],
)
def test_a_key_in_the_environment_is_found(agent: str, variable: str, provider: str, kind: str, tmp_path: Path) -> None:
    [found] = find_credentials({variable: SECRET}, tmp_path, agent=agent, reveal=True)
    assert (found.source, found.provider, found.kind, found.value) == (variable, provider, kind, SECRET)
    assert variable_for(found) == variable


def test_values_are_masked_unless_they_are_asked_for(tmp_path: Path) -> None:
    [found] = find_credentials({"ANTHROPIC_API_KEY": SECRET}, tmp_path, agent="claude")
    assert found.value == "sk-t…cret"
    assert SECRET not in repr(found)
    assert mask("short-secret") == "…"


def test_a_login_that_is_over_and_cannot_renew_is_not_found(tmp_path: Path) -> None:
    login = {"accessToken": SECRET, "expiresAt": PAST}
    put(tmp_path, ".claude/.credentials.json", {"claudeAiOauth": login})
    assert not find_credentials({}, tmp_path, agent="claude", now=NOW)
    put(tmp_path, ".claude/.credentials.json", {"claudeAiOauth": {**login, "refreshToken": "r"}})
    assert find_credentials({}, tmp_path, agent="claude", now=NOW)


def test_the_search_can_be_narrowed_by_provider_and_widened_to_all_agents(tmp_path: Path) -> None:
    env = {"ANTHROPIC_API_KEY": SECRET, "OPENAI_API_KEY": SECRET}
    everything = find_credentials(env, tmp_path)
    assert {item.agent for item in everything} == {"claude", "codex", "opencode", "pi"}
    assert {item.provider for item in find_credentials(env, tmp_path, provider="openai")} == {"openai"}


def test_the_agents_own_directories_are_honoured(tmp_path: Path) -> None:
    put(tmp_path, "elsewhere/auth.json", {"OPENAI_API_KEY": SECRET})
    assert find_credentials({"CODEX_HOME": str(tmp_path / "elsewhere")}, tmp_path / "home", agent="codex")


@pytest.mark.parametrize(
    "content", ["", "[]", "null", "{", '{"claudeAiOauth": 5, "primaryApiKey": {"a": 1}}', "\0" * 9]
)
def test_files_that_hold_something_else_are_passed_over(content: str, tmp_path: Path) -> None:
    for _, name, _, _, _ in FILES:
        put(tmp_path, name, content)
    assert not find_credentials({}, tmp_path)


def test_a_login_from_a_file_is_exported_under_the_name_that_agents_look_for(tmp_path: Path) -> None:
    put(tmp_path, ".pi/agent/auth.json", {"my-llm": {"type": "api_key", "key": SECRET}})
    put(tmp_path, ".claude/.credentials.json", {"claudeAiOauth": {"accessToken": SECRET}})
    names = {variable_for(item) for item in find_credentials({}, tmp_path)}
    assert names == {"MY_LLM_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"}
