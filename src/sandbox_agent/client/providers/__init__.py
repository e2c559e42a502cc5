"""Where a server of your own runs: `SandboxAgent.start(sandbox=docker("sandbox-agent"))`.

A provider's own SDK is imported when a sandbox is started, so that only who uses it has to install it."""

from sandbox_agent.client.providers.commercial import daytona, e2b, modal, vercel
from sandbox_agent.client.providers.docker import docker
from sandbox_agent.client.providers.fly import fly
from sandbox_agent.client.providers.local import local
from sandbox_agent.client.providers.provider import PORT, Machine, Provider

__all__ = ["PORT", "Machine", "Provider", "daytona", "docker", "e2b", "fly", "local", "modal", "vercel"]
