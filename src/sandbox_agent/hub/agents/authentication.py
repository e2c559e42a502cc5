"""When an agent wants a login first: by a key that is set, else with advice in its error, which says little."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

import msgspec

from sandbox_agent.core import versions
from sandbox_agent.core.launch import LaunchSpec
from sandbox_agent.core.versions import Version
from sandbox_agent.hub.agents.handshake import read_initialized

AUTH_REQUIRED = -32000
"""ACP: the agent wants `authenticate`, a key or a login first."""
_KEYS = ("_API_KEY", "_TOKEN")


def method_by_key(handshake: bytes, spec: LaunchSpec, env: Mapping[str, str]) -> str | None:
    """The first auth method that a variable in the agent's environment satisfies.

    Which variable that is comes from the method itself (`vars`, as ACP has it), from the manifest, or is named in the
    words of the method, as in `Use OPENAI_API_KEY`."""
    for method in _methods(handshake):
        if any(env.get(name) for name in spec.auth_keys.get(str(method.get("id")), ())):
            return str(method["id"])
        if _has_variables(method, env) or _names_a_key(method, spec, env):
            return str(method["id"])
    return None


def with_advice(error: dict[str, Any], spec: LaunchSpec | None, handshake: bytes) -> dict[str, Any]:
    """The agent's error with `data.authMethods`, `data.env`, `data.login` and `data.hint` added.

    What the agent itself says under these names stays."""
    methods = _methods(handshake)
    passed = spec.env_passthrough if spec else ()
    keys = list(spec.login_env if spec else ()) or [name for name in passed if name.endswith(_KEYS)]
    login = shlex.join(spec.login) if spec and spec.login else None
    way = f"sandbox-agent login {spec.agent}" if spec and spec.login else None
    advice = {"authMethods": methods, "env": keys, "login": login, "hint": _hint(methods, keys, way)}
    own = error.get("data")
    said = own if isinstance(own, dict) else {} if own is None else {"details": own}
    return {**error, "data": {**advice, **said}}


def _methods(handshake: bytes) -> list[dict[str, Any]]:
    """What the agent offers, as version 1 has it, whichever version it speaks."""
    said = msgspec.json.decode(handshake)
    initialized = read_initialized(said)
    if initialized is not None:
        said = versions.initialize_result(said, from_=initialized.version, to=Version.V1)
    offered = said.get("authMethods")
    return (
        [method for method in offered if isinstance(method, dict) and "id" in method]
        if isinstance(offered, list)
        else []
    )


def _has_variables(method: dict[str, Any], env: Mapping[str, str]) -> bool:
    wanted = method.get("vars")
    if not isinstance(wanted, list) or not wanted:
        return False
    needed = [one for one in wanted if isinstance(one, dict) and not one.get("optional")]
    return bool(needed) and all(env.get(str(one.get("name"))) for one in needed)


def _names_a_key(method: dict[str, Any], spec: LaunchSpec, env: Mapping[str, str]) -> bool:
    words = " ".join(str(method.get(field) or "") for field in ("id", "name", "description"))
    named = set(re.findall(r"[A-Z][A-Z0-9_]+", words))
    return any(env.get(name) for name in spec.env_passthrough if name.endswith(_KEYS) and name in named)


def _hint(methods: list[Any], keys: list[str], login: str | None) -> str:
    ways = []
    if keys:
        ways.append(f"set {' or '.join(keys)} in the environment of the server and restart it")
    if login is not None:
        ways.append(f"run `{login}` on the machine of the server")
    names = [str(method["id"]) for method in methods]
    if names:
        ways.append(f"call authenticate with methodId {' or '.join(names)}")
    return ", or ".join(ways) or "the agent's documentation says how to log in"
