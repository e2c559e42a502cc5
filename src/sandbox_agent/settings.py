"""One frozen value with every setting; the only reader of the environment and of the config file.

Where a setting is given more than once, flags win over the config file, and the file over the environment.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from sandbox_agent.agents import CustomAgent
from sandbox_agent.agents.registry import DEFAULT_REGISTRY_URL
from sandbox_agent.errors import ConfigError

_PREFIX = "SANDBOX_AGENT_"
LogLevel = Literal["debug", "info", "warning", "error"]


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    host: str = "127.0.0.1"
    port: int = 2468
    token: str | None = None
    no_token: bool = False
    data_dir: str | None = None
    store: str = "sqlite"
    log_level: LogLevel = "info"
    default_agent: str | None = None
    acp_request_timeout_ms: int = 120_000
    acp_registry_url: str = DEFAULT_REGISTRY_URL
    require_preinstall: bool = False
    permission_mode: str = "ask"
    permission_timeout_ms: int | None = None
    retention_days: float | None = None
    retention_bytes: int | None = None
    max_line_bytes: int = 64 << 20
    max_body_bytes: int = 64 << 20
    max_queued_prompts: int = 16
    max_connections: int = 10_000
    agents: dict[str, CustomAgent] = {}
    environ: dict[str, str] = {}
    """Our own environment, from which agents get the allow-listed part."""

    @property
    def data_path(self) -> Path:
        """Where everything durable lives."""
        if self.data_dir:
            return Path(self.data_dir).expanduser()
        home = Path(self.environ.get("HOME") or Path.home())
        return Path(self.environ.get("XDG_DATA_HOME") or home / ".local" / "share") / "sandbox-agent"


def load_settings(environ: Mapping[str, str], config: Path | None, flags: Mapping[str, Any]) -> Settings:
    """Raises ConfigError that names the source and the field that is wrong."""
    values = _from_environment(environ)
    if config is not None:
        values.update(_from_file(config))
    values.update({name: value for name, value in flags.items() if value is not None})
    values["environ"] = dict(environ)
    try:
        return msgspec.convert(values, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"wrong setting: {error}") from None


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    known = {
        name for name in Settings.__struct_fields__ if name not in {"agents", "environ", "no_token", "host", "port"}
    }
    found: dict[str, Any] = {}
    for name in known:
        value = environ.get(_PREFIX + name.upper())
        if value:
            found[name] = value
    return found


def _from_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"config file {str(path)!r} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"config file {str(path)!r} is not valid TOML: {error}") from None
