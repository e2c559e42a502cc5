"""What to do when an agent wants a login first: added to its error, which says little by itself."""

from __future__ import annotations

import shlex
from typing import Any

import msgspec

from sandbox_agent.core.launch import LaunchSpec

AUTH_REQUIRED = -32000
"""ACP: the agent wants `authenticate`, a key or a login first."""
_KEYS = ("_API_KEY", "_TOKEN")


def with_advice(error: dict[str, Any], spec: LaunchSpec | None, handshake: bytes) -> dict[str, Any]:
    """The agent's error with `data.authMethods`, `data.env`, `data.login` and `data.hint` added.

    What the agent itself says under these names stays."""
    offered = msgspec.json.decode(handshake).get("authMethods")
    methods = offered if isinstance(offered, list) else []
    keys = [name for name in (spec.env_passthrough if spec else ()) if name.endswith(_KEYS)]
    login = shlex.join(spec.login) if spec and spec.login else None
    advice = {"authMethods": methods, "env": keys, "login": login, "hint": _hint(methods, keys, login)}
    own = error.get("data")
    said = own if isinstance(own, dict) else {} if own is None else {"details": own}
    return {**error, "data": {**advice, **said}}


def _hint(methods: list[Any], keys: list[str], login: str | None) -> str:
    ways = []
    if keys:
        ways.append(f"set {' or '.join(keys)} in the environment of the server")
    if login is not None:
        ways.append(f"run `{login}` on the machine of the server")
    names = [str(method["id"]) for method in methods if isinstance(method, dict) and "id" in method]
    if names:
        ways.append(f"call authenticate with methodId {' or '.join(names)}")
    return ", or ".join(ways) or "the agent's documentation says how to log in"
