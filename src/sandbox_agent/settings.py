"""One frozen value with every setting; the only reader of the environment and of the config file.

Where a setting is given more than once, flags win over the config file, and the file over the environment.
"""

from __future__ import annotations

import ipaddress
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

from sandbox_agent.agents.custom import CustomAgent
from sandbox_agent.agents.registry import DEFAULT_REGISTRY_URL
from sandbox_agent.errors import ConfigError

_PREFIX = "SANDBOX_AGENT_"
_LISTS = frozenset({"allow_host", "cors_allow_origin", "cors_allow_method", "cors_allow_header", "fs_root"})
"""Settings of which there may be several: separated by commas in the environment."""
LogLevel = Literal["debug", "info", "warning", "error"]
_MIB = 1 << 20
_GIB = 1 << 30


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """No parameter that one of these feeds has a default of its own; `serve` hands them on."""

    host: str = "127.0.0.1"
    port: int = 2468
    token: str | None = None
    no_token: bool = False
    data_dir: str | None = None
    store: str = "sqlite"
    node_id: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9._-]{1,64}$")] | None = None
    """The name of this node among those that share a PostgreSQL store; by default one that the data directory keeps."""
    node_url: str | None = None
    """Where other nodes reach this one; by default the address that it listens on."""
    node_ca_file: str | None = None
    """Certificate authorities, as PEM, that nodes at `https` addresses are checked against; by default the system's."""
    cluster_token: str | None = None
    """The secret that nodes show each other; without it none forwards requests to another."""
    takeover: Literal["auto", "never"] = "auto"
    """Whether this node goes on with sessions of nodes that are gone."""
    lease_ms: Annotated[int, msgspec.Meta(ge=1000, le=30_000)] = 30_000
    """A node that has not been heard of for so long has lost its sessions."""
    drain_ms: Annotated[int, msgspec.Meta(ge=0)] = 10_000
    """How long a node of a cluster that drains or stops waits for running turns before it hands their sessions on."""
    log_level: LogLevel = "info"
    log_format: Literal["text", "json"] = "text"
    access_log: bool = False
    allow_host: tuple[str, ...] = ()
    cors_allow_origin: tuple[str, ...] = ()
    cors_allow_method: tuple[str, ...] = ()
    cors_allow_header: tuple[str, ...] = ()
    cors_allow_credentials: bool = False
    fs_root: tuple[str, ...] = ()
    default_agent: str | None = None
    acp_request_timeout_ms: int = 120_000
    agent_start_timeout_ms: int = 60_000
    agent_stop_grace_ms: int = 1_000
    acp_registry_url: str = DEFAULT_REGISTRY_URL
    require_preinstall: bool = False
    permission_mode: str = "ask"
    permission_timeout_ms: int | None = None
    retention_days: float | None = None
    retention_bytes: int | None = None
    store_memory_bytes: int = 32 * _MIB
    """History that may wait in memory while the disk refuses it."""
    search_text_bytes: Annotated[int, msgspec.Meta(ge=0)] = _GIB
    """Text of the newest conversations that full-text search finds; 0 turns search off."""
    refuse_turns_when_degraded: bool = True
    """A prompt with a `turnId` runs once: while history is not being written, nobody can promise that."""
    max_line_bytes: int = 64 * _MIB
    max_body_bytes: int = 64 * _MIB
    max_queued_prompts: int = 16
    max_open_sessions: Annotated[int, msgspec.Meta(ge=1)] | None = None
    max_running_turns: Annotated[int, msgspec.Meta(ge=1)] | None = None
    max_running_turns_per_user: Annotated[int, msgspec.Meta(ge=1)] | None = None
    max_open_requests: int = 1000
    """Permissions, questions and other requests of one agent that wait; more are refused."""
    open_request_bytes: int = 64 * _MIB
    early_update_bytes: int = 16 * _MIB
    """Updates of an agent for sessions that it has not announced yet; more are dropped."""
    max_session_processes: Annotated[int, msgspec.Meta(ge=1)] = 32
    """Agent processes that have one session each, of all agents together."""
    session_process_idle_ms: Annotated[int, msgspec.Meta(ge=100)] = 1_800_000
    """Such a process is ended when nothing has happened in it for so long and nobody is attached."""
    max_tool_calls: int = 10_000
    """Tool calls of one turn whose kind is remembered for permissions."""
    max_connections: int = 10_000
    connection_idle_ms: Annotated[int, msgspec.Meta(ge=100)] = 3_600_000
    """A connection that nobody reads or uses for so long is closed; its sessions stay."""
    connection_memory_bytes: int = _MIB
    """The newest events of a connection; older ones are read back from history."""
    correlation_bytes: int = 16 * _MIB
    """Messages that wait for their correlation with the earlier API, for one connection; more pass without it."""
    feed_memory_bytes: int = 4 * _MIB
    """The newest changes, for those who follow `GET /v1/events` and come back."""
    opencode_port: Annotated[int, msgspec.Meta(ge=0, le=65535)] | None = None
    """A second port, where `/opencode` is at the root, for clients that know no path before their own."""
    opencode_stream_bytes: int = 8 * _MIB
    """Events that may wait for one reader of `/opencode/event`; one that is slower is disconnected."""
    opencode_sessions: Annotated[int, msgspec.Meta(ge=1)] = 64
    """Sessions whose open turn is held in memory for those who follow them there."""
    max_sockets: int = 4096
    max_requests: int = 10_000
    max_subscribers: int = 4000
    processes: bool = True
    """Whether clients may run commands; agents always may."""
    max_processes: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 64
    """Commands of clients at once; they can change this and the next five while the server runs."""
    run_timeout_ms: Annotated[int, msgspec.Meta(ge=1)] = 30_000
    max_run_timeout_ms: Annotated[int, msgspec.Meta(ge=1)] = 300_000
    process_output_bytes: Annotated[int, msgspec.Meta(ge=1)] = _MIB
    """What is kept of each stream of a command that is run to its end."""
    process_log_bytes: Annotated[int, msgspec.Meta(ge=1)] = 10 * _MIB
    """The log of one process, on disk; the oldest output is dropped."""
    process_input_bytes: Annotated[int, msgspec.Meta(ge=1)] = 64 << 10
    """Input of a process in one request."""
    max_exited_processes: Annotated[int, msgspec.Meta(ge=0)] = 100
    """Processes that have exited and are still listed, with their logs."""
    max_file_bytes: int | None = None
    max_inline_bytes: int = 16 * _MIB
    max_listed: int = 100_000
    max_file_operations: int = 256
    max_file_streams: int = 128
    file_workers: int = 4
    upload_stall_ms: int = 60_000
    max_archive_bytes: int = 16 * _GIB
    max_archive_entries: int = 100_000
    max_archive_depth: int = 64
    max_member_bytes: int = 8 * _GIB
    max_gzip_ratio: int = 200
    gzip_ratio_after: int = 16 * _MIB
    direct_http: bool = True
    """Requests that repeat on a socket skip the plain ASGI path."""
    agents: dict[str, CustomAgent] = {}
    environ: dict[str, str] = {}
    """Our own environment, from which agents get the allow-listed part."""

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach us."""
        if self.host.lower() == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False

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
    values.update({name: value for name, value in flags.items() if value not in (None, ())})
    values["environ"] = dict(environ)
    if flags.get("no_token"):
        if flags.get("token") is not None:
            raise ConfigError("--token and --no-token exclude each other")
        values.pop("token", None)
    try:
        settings = msgspec.convert(values, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"wrong setting: {error}") from None
    _check(settings)
    return settings


def _check(settings: Settings) -> None:
    if settings.token is not None and not re.fullmatch(r"[!-~]+", settings.token):
        raise ConfigError("the token must be visible ASCII characters without blanks, and at least one")
    if not settings.is_loopback and settings.token is None and not settings.no_token:
        raise ConfigError(
            f"{settings.host} can be reached from other machines: give a token (--token, SANDBOX_AGENT_TOKEN), or "
            "--no-token if everybody who can reach it may use it"
        )
    _check_node(settings)
    for root in settings.fs_root:
        if not Path(root).is_dir():
            raise ConfigError(f"fs_root {root!r} is not a directory")


def _check_node(settings: Settings) -> None:
    if settings.cluster_token is not None:
        if not re.fullmatch(r"[!-~]{16,}", settings.cluster_token):
            raise ConfigError("cluster_token must be at least 16 visible ASCII characters without blanks")
        if not settings.store.startswith("postgresql://"):
            raise ConfigError("cluster_token is for nodes that share a PostgreSQL store: set store = postgresql://…")
    if settings.node_url is not None:
        parts = urlsplit(settings.node_url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.username:
            raise ConfigError(f"node_url {settings.node_url!r} is not an address such as http://10.0.0.5:2468")


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    known = {
        name for name in Settings.__struct_fields__ if name not in {"agents", "environ", "no_token", "host", "port"}
    }
    found: dict[str, Any] = {}
    for name in known:
        value = environ.get(_PREFIX + name.upper())
        if value:
            found[name] = tuple(part.strip() for part in value.split(",")) if name in _LISTS else value
    return found


def _from_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"config file {str(path)!r} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"config file {str(path)!r} is not valid TOML: {error}") from None
