"""Real agents against the loopback LLM: the environment and config files of each, in a private home."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

REAL_AGENTS = ("claude", "codex", "opencode", "gemini", "pi")
"""Those that go through the whole matrix, in every run."""
CHECKED_AGENTS = (*REAL_AGENTS, "goose", "qwen", "kimi-code", "copilot", "vibe", "fast-agent", "droid", "grok")
"""Those that the conformance check is made with: the later ones with FULL=1 only, for their size."""

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


def _goose(home: Path, base: str) -> dict[str, str]:
    return {
        "GOOSE_PROVIDER": "openai",
        "GOOSE_MODEL": "fake-model",
        "OPENAI_HOST": base,
        "OPENAI_API_KEY": "loopback",
        "GOOSE_MODE": "approve",
        "GOOSE_DISABLE_KEYRING": "1",
        "GOOSE_TELEMETRY_ENABLED": "false",
    }


def _qwen(home: Path, base: str) -> dict[str, str]:
    settings = {
        "security": {"auth": {"selectedType": "openai"}},
        "model": {"name": "fake-model"},
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
    }
    _write(home / ".qwen" / "settings.json", json.dumps(settings))
    return {"OPENAI_BASE_URL": f"{base}/v1", "OPENAI_API_KEY": "loopback", "OPENAI_MODEL": "fake-model"}


_KIMI_CONFIG = """\
default_model = "fake"

[models.fake]
provider = "loopback"
model = "fake-model"
max_context_size = 100000

[providers.loopback]
type = "openai"
base_url = "{base}/v1"
api_key = "loopback"
"""


def _kimi_code(home: Path, base: str) -> dict[str, str]:
    _write(home / ".kimi-code" / "config.toml", _KIMI_CONFIG.format(base=base))
    return {}


def _copilot(home: Path, base: str) -> dict[str, str]:
    return {
        "COPILOT_PROVIDER_BASE_URL": f"{base}/v1",
        "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_API_KEY": "loopback",
        "COPILOT_MODEL": "fake-model",
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
    }


_VIBE_CONFIG = """\
active_model = "fake"
enable_auto_update = false
enable_update_checks = false
enable_telemetry = false

[[providers]]
name = "loopback"
api_base = "{base}/v1"
api_key_env_var = "LOOPBACK_KEY"
api_style = "openai"
backend = "generic"

[[models]]
name = "fake-model"
provider = "loopback"
alias = "fake"
"""


def _vibe(home: Path, base: str) -> dict[str, str]:
    _write(home / ".vibe" / "config.toml", _VIBE_CONFIG.format(base=base))
    return {"VIBE_HOME": str(home / ".vibe"), "MISTRAL_API_KEY": "loopback", "LOOPBACK_KEY": "loopback"}


def _fast_agent(home: Path, base: str) -> dict[str, str]:
    return {
        "GENERIC_API_KEY": "loopback",
        "GENERIC_BASE_URL": f"{base}/v1",
        "FAST_AGENT_MODEL": "generic.fake-model",
    }


def _droid(home: Path, base: str) -> dict[str, str]:
    model = {
        "model": "fake-model",
        "displayName": "Fake",
        "baseUrl": f"{base}/v1",
        "apiKey": "loopback",
        "provider": "generic-chat-completion-api",
        "maxOutputTokens": 4096,
    }
    chosen = "custom:Fake-0"
    settings = {"customModels": [model], "model": chosen, "sessionDefaultSettings": {"model": chosen}}
    _write(home / ".factory" / "settings.json", json.dumps(settings))
    return {"FACTORY_API_KEY": "fk-loopback"}


_GROK_CONFIG = """\
[models]
default = "fake"

[model.fake]
model = "fake-model"
base_url = "{base}/v1"
name = "Fake"
api_key = "loopback"
api_backend = "chat_completions"
context_window = 100000
"""


def _grok(home: Path, base: str) -> dict[str, str]:
    _write(home / ".grok" / "config.toml", _GROK_CONFIG.format(base=base))
    return {"XAI_API_KEY": "xai-loopback"}


_RECIPES: dict[str, Callable[[Path, str], dict[str, str]]] = {
    "claude": _claude,
    "codex": _codex,
    "opencode": _opencode,
    "gemini": _gemini,
    "pi": _pi,
    "goose": _goose,
    "qwen": _qwen,
    "kimi-code": _kimi_code,
    "copilot": _copilot,
    "vibe": _vibe,
    "fast-agent": _fast_agent,
    "droid": _droid,
    "grok": _grok,
}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
