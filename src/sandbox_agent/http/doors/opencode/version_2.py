"""`/api/*`, OpenCode's second API, as far as its terminal UI reads it: each answer has its location beside its data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from sandbox_agent.http.doors.opencode.call import Call
from sandbox_agent.http.doors.opencode.choices import Choices
from sandbox_agent.http.doors.opencode.commands import Commands
from sandbox_agent.http.doors.opencode.errors import not_found
from sandbox_agent.http.doors.opencode.workspace import Workspace

_REQUEST: dict[str, Any] = {"headers": {}, "body": {}}


class SecondApi:
    def __init__(self, workspace: Workspace, choices: Choices, commands: Commands) -> None:
        self._workspace = workspace
        self._choices = choices
        self._commands = commands

    async def _located(self, call: Call, data: Any) -> dict[str, Any]:
        return {"location": await self._workspace.location(call), "data": data}

    def located(self, handler: Callable[[Call], Awaitable[Any]]) -> Callable[[Call], Awaitable[Any]]:
        """The same in the form of the second API."""

        async def answer(call: Call) -> dict[str, Any]:
            return await self._located(call, await handler(call))

        return answer

    async def nothing(self, call: Call) -> dict[str, Any]:
        return await self._located(call, [])

    async def agents(self, call: Call) -> dict[str, Any]:
        agents = await self._choices.agents(call)
        return await self._located(call, [_agent(agent) for agent in agents])

    async def providers(self, call: Call) -> dict[str, Any]:
        providers = (await self._choices.providers(call))["providers"]
        return await self._located(call, [_provider(provider) for provider in providers])

    async def provider(self, call: Call) -> dict[str, Any]:
        wanted = call.path["providerID"]
        for provider in (await self._choices.providers(call))["providers"]:
            if provider["id"] == wanted:
                return await self._located(call, _provider(provider))
        raise not_found("ProviderNotFoundError", "providerID", wanted[:80], "Provider")

    async def models(self, call: Call) -> dict[str, Any]:
        providers = (await self._choices.providers(call))["providers"]
        models = [_model(model) for provider in providers for model in provider["models"].values()]
        return await self._located(call, models)

    async def commands(self, call: Call) -> dict[str, Any]:
        listed = await self._commands.listed(call)
        names = ("name", "template", "description")
        return await self._located(call, [{name: command[name] for name in names} for command in listed])

    async def find(self, call: Call) -> dict[str, Any]:
        return await self._located(call, await self._workspace.find_entries(call))


def _agent(agent: dict[str, Any]) -> dict[str, Any]:
    told = {"id": agent["name"], "description": agent["description"], "mode": agent["mode"], "hidden": False}
    return {**told, "request": _REQUEST, "permissions": []}


def _provider(provider: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": provider["id"],
        "name": provider["name"],
        "api": {"type": "native", "settings": {}},
        "request": _REQUEST,
    }


def _model(model: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": model["id"],
        "providerID": model["providerID"],
        "name": model["name"],
        "api": {"id": model["id"], "type": "native", "settings": {}},
        "capabilities": {"tools": True, "input": ["text", "image"], "output": ["text"]},
        "request": _REQUEST,
        "variants": [],
        "time": {"released": 0},
        "cost": [],
        "status": "active",
        "enabled": True,
        "limit": model["limit"],
    }
