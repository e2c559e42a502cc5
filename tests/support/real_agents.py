"""Real agents against the loopback LLM: the environment and config files of each, in a private home."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

REAL_AGENTS = ("claude", "codex", "opencode", "gemini", "pi")

_CODEX_CONFIG = """\
model = "fake-model"
model_provider = "loopback"
approval_policy = "on-request"
sandbox_mode = "read-only"
check_for_update_on_startup = false

[model_providers.loopback]
name = "Loopback"
base_url = "{base}/v1"
env_key = "LOOPBACK_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0

[analytics]
enabled = false
"""


def prepare_agent(agent: str, home: Path, llm_url: str) -> dict[str, str]:
    """Write the agent's config under `home` and return the environment that makes it talk to `llm_url` only.

    The environment goes on top of PATH, and of what the agent's launch spec brings.
    """
    home.mkdir(parents=True, exist_ok=True)
    return {"HOME": str(home), "LANG": "C.UTF-8", "TERM": "dumb", **_RECIPES[agent](home, llm_url)}


def _claude(home: Path, base: str) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": base,
        "ANTHROPIC_API_KEY": "sk-ant-loopback",
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "IS_SANDBOX": "1",
    }


def _codex(home: Path, base: str) -> dict[str, str]:
    _write(home / ".codex" / "config.toml", _CODEX_CONFIG.format(base=base))
    return {
        "CODEX_HOME": str(home / ".codex"),
        "LOOPBACK_KEY": "loopback",
        "INITIAL_AGENT_MODE": "read-only",
        "NO_BROWSER": "1",
    }


def _opencode(home: Path, base: str) -> dict[str, str]:
    model = {"name": "Fake", "tool_call": True, "limit": {"context": 100_000, "output": 4096}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Loopback",
        "options": {"baseURL": f"{base}/v1", "apiKey": "loopback"},
        "models": {"fake-model": model, "other-model": model},
    }
    config = {
        "autoupdate": False,
        "share": "disabled",
        "model": "loopback/fake-model",
        "small_model": "loopback/fake-model",
        "provider": {"loopback": provider},
        "permission": {"bash": "ask", "edit": "ask"},
    }
    _write(home / "opencode.json", json.dumps(config))
    switches = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
    return {
        "OPENCODE_CONFIG": str(home / "opencode.json"),
        **{f"OPENCODE_DISABLE_{switch}": "1" for switch in switches},
    }


def _gemini(home: Path, base: str) -> dict[str, str]:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "general": {"enableAutoUpdate": False, "disableAutoUpdate": True, "disableUpdateNag": True},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
    }
    _write(home / ".gemini" / "settings.json", json.dumps(settings))
    return {
        "GOOGLE_GEMINI_BASE_URL": base,
        "GEMINI_API_KEY": "loopback",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GEMINI_CLI_NO_RELAUNCH": "true",
    }


def _pi(home: Path, base: str) -> dict[str, str]:
    sizes = {"contextWindow": 100_000, "maxTokens": 4096, "reasoning": True}
    models = [{"id": name, **sizes} for name in ("fake-model", "other-model")]
    provider = {"baseUrl": f"{base}/v1", "api": "openai-completions", "apiKey": "loopback", "models": models}
    settings = {
        "defaultProvider": "loopback",
        "defaultModel": "fake-model",
        "quietStartup": True,
        "enableInstallTelemetry": False,
    }
    _write(home / ".pi" / "agent" / "models.json", json.dumps({"providers": {"loopback": provider}}))
    _write(home / ".pi" / "agent" / "settings.json", json.dumps(settings))
    return {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1"}


_RECIPES: dict[str, Callable[[Path, str], dict[str, str]]] = {
    "claude": _claude,
    "codex": _codex,
    "opencode": _opencode,
    "gemini": _gemini,
    "pi": _pi,
}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
