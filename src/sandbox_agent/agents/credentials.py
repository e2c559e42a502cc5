"""API keys and logins that agents would use: found in the environment and in their usual files."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

Kind = Literal["api_key", "oauth"]
_VARIABLES: dict[tuple[str, Kind], str] = {
    ("anthropic", "api_key"): "ANTHROPIC_API_KEY CLAUDE_API_KEY",
    ("anthropic", "oauth"): "ANTHROPIC_AUTH_TOKEN ANTHROPIC_OAUTH_TOKEN CLAUDE_CODE_OAUTH_TOKEN",
    ("openai", "api_key"): "OPENAI_API_KEY CODEX_API_KEY",
    ("google", "api_key"): "GEMINI_API_KEY GOOGLE_API_KEY GOOGLE_GENERATIVE_AI_API_KEY",
    ("openrouter", "api_key"): "OPENROUTER_API_KEY",
    ("opencode", "api_key"): "OPENCODE_API_KEY",
    ("amp", "api_key"): "AMP_API_KEY",
}
_PROVIDER_VARIABLES = {variable: means for means, variables in _VARIABLES.items() for variable in variables.split()}
_AGENT_VARIABLES = {
    "claude": ("ANTHROPIC_API_KEY", "CLAUDE_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
    "codex": ("OPENAI_API_KEY", "CODEX_API_KEY"),
    "opencode": (
        *("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"),
        *("OPENROUTER_API_KEY", "OPENCODE_API_KEY"),
    ),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "pi": (
        *("ANTHROPIC_API_KEY", "ANTHROPIC_OAUTH_TOKEN", "OPENAI_API_KEY", "GEMINI_API_KEY"),
        "OPENROUTER_API_KEY",
    ),
    "amp": ("AMP_API_KEY",),
}
AGENTS_WITH_CREDENTIALS = tuple(_AGENT_VARIABLES)
_MAX_FILE = 1024 * 1024


class Credential(msgspec.Struct, frozen=True, kw_only=True):
    """One credential. `value` is masked unless it was asked for; `source` is a variable's name or a file's path."""

    agent: str
    provider: str
    source: str
    kind: Kind
    value: str


def find_credentials(
    env: Mapping[str, str],
    home: Path,
    *,
    agent: str | None = None,
    provider: str | None = None,
    reveal: bool = False,
    now: float | None = None,
) -> list[Credential]:
    """What is there, in the order in which agents would prefer it. Logins that are over and cannot renew are not."""
    now = time.time() if now is None else now
    found: list[Credential] = []
    for name in AGENTS_WITH_CREDENTIALS if agent is None else (agent,):
        found += _in_environment(name, env)
        if reader := _READERS.get(name):
            found += reader(home, env, now)
    chosen = [item for item in found if provider in {None, item.provider}]
    return chosen if reveal else [msgspec.structs.replace(item, value=mask(item.value)) for item in chosen]


def variable_for(credential: Credential) -> str:
    """The environment variable under which another process would look for this credential."""
    if credential.source in _PROVIDER_VARIABLES:
        return credential.source
    if credential.provider == "anthropic":
        return "ANTHROPIC_API_KEY" if credential.kind == "api_key" else "CLAUDE_CODE_OAUTH_TOKEN"
    known = {"openai": "OPENAI_API_KEY", "google": "GEMINI_API_KEY", "amp": "AMP_API_KEY"}
    return known.get(credential.provider, re.sub(r"[^A-Z0-9]", "_", credential.provider.upper()) + "_API_KEY")


def mask(value: str) -> str:
    """Enough to recognise a long secret by, and nothing of a short one."""
    return f"{value[:4]}…{value[-4:]}" if len(value) >= 20 else "…"


def _in_environment(agent: str, env: Mapping[str, str]) -> Iterator[Credential]:
    for variable in _AGENT_VARIABLES.get(agent, ()):
        value = env.get(variable, "").strip()
        if value:
            provider, kind = _PROVIDER_VARIABLES[variable]
            yield _credential(agent, provider, variable, kind, value)


def _read_claude(home: Path, env: Mapping[str, str], now: float) -> Iterator[Credential]:
    folder = Path(env.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    for path in (home / ".claude.json", home / ".claude.json.api", folder / "config.json"):
        document = _read_json(path)
        for field in ("primaryApiKey", "apiKey", "anthropicApiKey"):
            yield from _some("claude", "anthropic", path, "api_key", document.get(field))
    for path in (folder / ".credentials.json", home / ".claude-oauth-credentials.json"):
        login = _table(_read_json(path), "claudeAiOauth")
        if _alive(login.get("expiresAt"), login.get("refreshToken"), now):
            yield from _some("claude", "anthropic", path, "oauth", login.get("accessToken"))


def _read_codex(home: Path, env: Mapping[str, str], now: float) -> Iterator[Credential]:
    path = Path(env.get("CODEX_HOME") or home / ".codex") / "auth.json"
    document = _read_json(path)
    yield from _some("codex", "openai", path, "api_key", document.get("OPENAI_API_KEY"))
    yield from _some("codex", "openai", path, "oauth", _table(document, "tokens").get("access_token"))


def _read_opencode(home: Path, env: Mapping[str, str], now: float) -> Iterator[Credential]:
    path = Path(env.get("XDG_DATA_HOME") or home / ".local" / "share") / "opencode" / "auth.json"
    yield from _provider_table("opencode", path, now)


def _read_gemini(home: Path, env: Mapping[str, str], now: float) -> Iterator[Credential]:
    folder = home / ".gemini"
    for name, value in _read_dotenv(folder / ".env"):
        if name in _AGENT_VARIABLES["gemini"]:
            yield from _some("gemini", "google", folder / ".env", "api_key", value)
    login = _read_json(folder / "oauth_creds.json")
    if _alive(login.get("expiry_date"), login.get("refresh_token"), now):
        yield from _some("gemini", "google", folder / "oauth_creds.json", "oauth", login.get("access_token"))


def _read_pi(home: Path, env: Mapping[str, str], now: float) -> Iterator[Credential]:
    folder = Path(env.get("PI_CODING_AGENT_DIR") or home / ".pi" / "agent")
    yield from _provider_table("pi", folder / "auth.json", now)


def _read_amp(home: Path, env: Mapping[str, str], now: float) -> Iterator[Credential]:
    path = Path(env.get("XDG_DATA_HOME") or home / ".local" / "share") / "amp" / "secrets.json"
    for name, value in _read_json(path).items():
        if name.startswith("apiKey"):
            yield from _some("amp", "amp", path, "api_key", value)
    settings = Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "amp" / "settings.json"
    yield from _some("amp", "amp", settings, "api_key", _read_json(settings).get("amp.apiKey"))


_Reader = Callable[[Path, Mapping[str, str], float], Iterator[Credential]]
_READERS: dict[str, _Reader] = {
    "claude": _read_claude,
    "codex": _read_codex,
    "opencode": _read_opencode,
    "gemini": _read_gemini,
    "pi": _read_pi,
    "amp": _read_amp,
}


def _provider_table(agent: str, path: Path, now: float) -> Iterator[Credential]:
    """Read `{provider: {type, key | access, refresh, expires}}`, as opencode and pi keep it."""
    document = _read_json(path)
    for provider in document:
        entry = _table(document, provider)
        if entry.get("type") in {"api", "api_key"}:
            yield from _some(agent, provider, path, "api_key", entry.get("key"))
        elif entry.get("type") == "oauth" and _alive(entry.get("expires"), entry.get("refresh"), now):
            yield from _some(agent, provider, path, "oauth", entry.get("access"))


def _some(agent: str, provider: str, path: Path, kind: Kind, value: object) -> Iterator[Credential]:
    if isinstance(value, str) and value.strip():
        yield _credential(agent, provider, str(path), kind, value.strip())


def _credential(agent: str, provider: str, source: str, kind: Kind, value: str) -> Credential:
    return Credential(agent=agent, provider=provider, source=source, kind=kind, value=value)


def _alive(expires_ms: object, refresh: object, now: float) -> bool:
    return bool(refresh) or not isinstance(expires_ms, int | float) or expires_ms / 1000 > now


def _read_json(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _MAX_FILE:
            return {}
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError):
        return {}


def _read_dotenv(path: Path) -> Iterator[tuple[str, str]]:
    try:
        lines = path.read_text("utf-8").splitlines() if path.stat().st_size <= _MAX_FILE else []
    except (OSError, UnicodeDecodeError):
        return
    for line in lines:
        name, equals, value = line.removeprefix("export ").partition("=")
        if equals:
            yield name.strip(), value.strip().strip("\"'")


def _table(document: dict[str, Any], name: str) -> dict[str, Any]:
    value = document.get(name)
    return value if isinstance(value, dict) else {}
