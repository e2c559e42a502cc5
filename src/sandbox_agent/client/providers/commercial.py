"""Sandboxes that are rented: each adapter makes the calls of the vendor's own SDK, and no others."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass

from sandbox_agent.client.providers.provider import PORT, Machine, Provider, command, environment, vendor
from sandbox_agent.errors import ConfigError

_NAME = "sandbox-agent"
_HOUR = 3600


@dataclass(frozen=True)
class _E2B:
    template: str
    timeout: int
    setup: str | None

    async def create(self, token: str, env: Mapping[str, str]) -> Machine:
        sdk = vendor("e2b", install="e2b")
        sandbox = await sdk.AsyncSandbox.create(template=self.template, timeout=self.timeout, envs=dict(env))
        try:
            variables = environment(token, env)
            await sandbox.commands.run(command(self.setup), background=True, envs=variables, timeout=0)
            url = _address(sandbox.get_host(PORT))
        except BaseException:
            await sandbox.kill()
            raise

        async def destroy() -> None:
            await sandbox.kill()

        return Machine(url, token, destroy)


def e2b(template: str, *, timeout: int = _HOUR, setup: str | None = None) -> Provider:
    """An E2B sandbox of `template`, killed in the end, and by E2B after `timeout` seconds. Needs E2B_API_KEY."""
    return _E2B(template, timeout, setup)


@dataclass(frozen=True)
class _Daytona:
    snapshot: str | None
    image: str | None
    auto_stop_minutes: int
    setup: str | None

    async def create(self, token: str, env: Mapping[str, str]) -> Machine:
        sdk = vendor("daytona", install="daytona")
        variables = environment(token, env)
        # Public: the address needs no login of Daytona's. The server behind it takes nobody without the token.
        shared = {"env_vars": variables, "public": True, "auto_stop_interval": self.auto_stop_minutes}
        if self.image is not None:
            wanted = sdk.CreateSandboxFromImageParams(image=self.image, **shared)
        else:
            wanted = sdk.CreateSandboxFromSnapshotParams(snapshot=self.snapshot, **shared)
        client = sdk.AsyncDaytona()
        try:
            sandbox = await client.create(wanted)
        except BaseException:
            await client.close()
            raise

        async def destroy() -> None:
            try:
                await sandbox.delete()
            finally:
                await client.close()

        try:
            await sandbox.process.create_session(_NAME)
            request = sdk.SessionExecuteRequest(command=command(self.setup), run_async=True)
            await sandbox.process.execute_session_command(_NAME, request)
            link = await sandbox.get_preview_link(PORT)
        except BaseException:
            await destroy()
            raise
        return Machine(link.url, token, destroy)


def daytona(
    snapshot: str | None = None, *, image: str | None = None, auto_stop_minutes: int = 60, setup: str | None = None
) -> Provider:
    """A Daytona sandbox of a snapshot or an image, deleted in the end. Needs DAYTONA_API_KEY.

    Daytona stops it after `auto_stop_minutes` without activity; 0: never."""
    if snapshot is not None and image is not None:
        raise ConfigError("a Daytona sandbox is made of a snapshot or of an image, not of both")
    return _Daytona(snapshot, image, auto_stop_minutes, setup)


@dataclass(frozen=True)
class _Modal:
    image: str
    app: str
    timeout: int
    setup: str | None

    async def create(self, token: str, env: Mapping[str, str]) -> Machine:
        sdk = vendor("modal", install="modal")
        app = await sdk.App.lookup.aio(self.app, create_if_missing=True)
        sandbox = await sdk.Sandbox.create.aio(
            "sh",
            "-c",
            command(self.setup),
            app=app,
            image=sdk.Image.from_registry(self.image),
            secrets=[sdk.Secret.from_dict(environment(token, env))],
            encrypted_ports=[PORT],
            timeout=self.timeout,
        )
        try:
            tunnels = await sandbox.tunnels.aio()
        except BaseException:
            await sandbox.terminate.aio()
            raise

        async def destroy() -> None:
            await sandbox.terminate.aio()

        return Machine(tunnels[PORT].url, token, destroy)


def modal(image: str, *, app: str = _NAME, timeout: int = _HOUR, setup: str | None = None) -> Provider:
    """A Modal Sandbox of an image in a registry, terminated in the end, and by Modal after `timeout` seconds.

    Needs MODAL_TOKEN_ID and MODAL_TOKEN_SECRET, or `modal token new`."""
    return _Modal(image, app, timeout, setup)


@dataclass(frozen=True)
class _Vercel:
    image: str | None
    timeout: int
    setup: str | None

    async def create(self, token: str, env: Mapping[str, str]) -> Machine:
        sdk = vendor("vercel.sandbox", install="vercel")
        variables = environment(token, env)
        sandbox = await sdk.create_sandbox(
            image=self.image, ports=[PORT], execution_time_limit=self.timeout, env=variables, persistent=False
        )
        try:
            await sandbox.create_process("sh", ["-c", command(self.setup)])
            (url,) = (route.url for route in sandbox.routes if route.port == PORT)
        except BaseException:
            await sandbox.destroy()
            raise

        async def destroy() -> None:
            await sandbox.destroy()

        return Machine(url, token, destroy)


def vercel(*, image: str | None = None, timeout: int = _HOUR, setup: str | None = None) -> Provider:
    """A Vercel Sandbox, destroyed in the end, and by Vercel after `timeout` seconds.

    Needs VERCEL_OIDC_TOKEN (`vercel env pull`) or an access token; see Vercel's documentation."""
    return _Vercel(image, timeout, setup)


def _address(host: str) -> str:
    """What a vendor gives as host is served with TLS, unless it is this machine (the vendor's debug mode)."""
    name = host.partition(":")[0]
    try:
        is_here = name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        is_here = False
    return f"{'http' if is_here else 'https'}://{host}"
