"""A Machine on Fly.io, by its HTTP API: there is no SDK of Fly's for Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sandbox_agent.client.providers.provider import PORT, Machine, Provider, command, environment
from sandbox_agent.errors import ConfigError

if TYPE_CHECKING:
    import httpx
else:
    from sandbox_agent import lazy_httpx as httpx

_API = "https://api.machines.dev"


@dataclass(frozen=True)
class _Fly:
    app: str
    image: str
    api_token: str = field(repr=False)
    region: str | None
    guest: Mapping[str, Any]
    setup: str | None
    api_url: str
    url: str

    async def create(self, token: str, env: Mapping[str, str]) -> Machine:
        config = {
            "image": self.image,
            "env": environment(token, env),
            "init": {"exec": ["sh", "-c", command(self.setup)]},
            "guest": dict(self.guest),
            "restart": {"policy": "no"},
            "auto_destroy": True,
            "services": [
                {"protocol": "tcp", "internal_port": PORT, "ports": [{"port": 443, "handlers": ["tls", "http"]}]}
            ],
        }
        placed = {} if self.region is None else {"region": self.region}
        made = await self._ask("POST", "", {"config": config, **placed})
        machine_id = str(made["id"])

        async def destroy() -> None:
            await self._ask("DELETE", f"/{machine_id}?force=true")

        # The app's address leads to any of its Machines: the header names ours.
        return Machine(self.url, token, destroy, headers={"fly-force-instance-id": machine_id})

    async def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.api_token}"}
        async with httpx.AsyncClient(base_url=self.api_url, headers=headers, timeout=60.0) as http:
            response = await http.request(method, f"/v1/apps/{self.app}/machines{path}", json=body)
        if response.is_error:
            raise ConfigError(f"Fly answered {response.status_code} to {method} of a Machine: {response.text[:500]}")
        answer: dict[str, Any] = response.json() if response.content else {}
        return answer


def fly(
    app: str,
    image: str,
    *,
    api_token: str,
    region: str | None = None,
    cpus: int = 2,
    memory_mb: int = 2048,
    setup: str | None = None,
    api_url: str = _API,
    url: str | None = None,
) -> Provider:
    """A Machine in an app of yours that has a public address, destroyed in the end.

    `fly tokens create deploy` gives an `api_token`.
    `url` is the address of the app, `https://APP.fly.dev` unless it has one of its own."""
    guest = {"cpu_kind": "shared", "cpus": cpus, "memory_mb": memory_mb}
    return _Fly(app, image, api_token, region, guest, setup, api_url, url or f"https://{app}.fly.dev")
