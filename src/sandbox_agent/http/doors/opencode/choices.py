"""What a user of OpenCode chooses from: our agents as providers, their models, and their modes as OpenCode's agents."""

from __future__ import annotations

import asyncio
from typing import Any

from sandbox_agent.agents import AgentListing, Catalog
from sandbox_agent.core import config_options
from sandbox_agent.core.frames import META
from sandbox_agent.core.ids import AgentId
from sandbox_agent.core.json_values import Object
from sandbox_agent.core.users import User
from sandbox_agent.errors import InvalidParams, RemoteError, SandboxAgentError
from sandbox_agent.history.opencode.fold import DEFAULT_MODE, DEFAULT_MODEL
from sandbox_agent.http.doors.opencode import bodies
from sandbox_agent.http.doors.opencode.call import Call
from sandbox_agent.http.doors.opencode.presence import Presence
from sandbox_agent.hub.agents.probe import Offer, Probe
from sandbox_agent.store.base import SessionRecord

_PREFERRED = ("claude", "codex", "opencode", "gemini", "pi")
_NOTHING = Offer(models=[], modes=[], config_options=[])
_PROBE_SECONDS = 10.0
_CONTEXT = 200_000
"""Agents do not tell the size of a model's context; the terminal UI needs one."""


class Choices:
    def __init__(self, catalog: Catalog, probe: Probe, presence: Presence, *, default_agent: str | None) -> None:
        self._catalog = catalog
        self._probe = probe
        self._presence = presence
        self._default = default_agent

    async def default(self, call: Call) -> AgentId:
        """The agent of a session that names none: the client's, the server's, else the first that is installed."""
        if call.agent is not None:
            return call.agent
        if self._default is not None:
            return AgentId(self._default)
        installed = [listing.id for listing in await self._listings() if listing.installed]
        return AgentId(next((name for name in (*_PREFERRED, *installed) if name in installed), "mock"))

    async def has_mode(self, agent: AgentId, mode: str) -> bool:
        offer = await self._offer(agent, asks=False)
        return any(choice["id"] == mode for choice in offer.modes) or not offer.modes

    async def commands(self, agent: AgentId) -> list[Object]:
        """The slash commands of an agent that has no session yet: clients ask for them once, when they start."""
        await self._offer(agent, asks=True)
        return self._probe.commands(agent)

    async def apply(self, user: User, record: SessionRecord, model: bodies.ModelWish | None, mode: str | None) -> None:
        """Set what a prompt wishes for, where it is another than now. Raises InvalidParams, RemoteError."""
        if model is not None:
            if model.provider_id != record.agent:
                raise InvalidParams(
                    f"this session belongs to agent {record.agent!r}, not {model.provider_id!r}: "
                    "start a new session to use another agent"
                )
            if model.model not in ("", DEFAULT_MODEL, record.model):
                await self._choose(user, record, "model", model.model)
        offered = [choice["id"] for choice in config_options.choices(record.offered, "mode")]
        if mode is not None and mode in offered and mode != record.mode:
            await self._choose(user, record, "mode", mode)

    async def _choose(self, user: User, record: SessionRecord, category: config_options.Category, value: str) -> None:
        choice = config_options.choose(record.offered, category, value)
        if choice is None:
            raise InvalidParams(f"agent {record.agent!r} offers no {category} to choose; use {DEFAULT_MODEL!r}")
        method, params = choice
        meta = {META: {"agent": record.agent}}
        try:
            await self._presence.ask(
                user, record.agent, method, {"sessionId": record.session_id, **params, "_meta": meta}, timeout=60.0
            )
        except RemoteError as error:
            raise InvalidParams(f"agent {record.agent!r} refused {category} {value!r}: {error.detail}") from None

    async def config(self, call: Call) -> dict[str, Any]:
        return {
            "$schema": "https://opencode.ai/config.json",
            "model": f"{await self.default(call)}/{DEFAULT_MODEL}",
            "share": "disabled",
            "autoupdate": False,
            "username": "sandbox-agent",
            "agent": {},
            "mode": {},
            "command": {},
            "plugin": [],
        }

    async def providers(self, call: Call) -> dict[str, Any]:
        """Those that can be used now, the default first."""
        listed = await self._providers(call, installed_only=True)
        return {"providers": listed, "default": {provider["id"]: DEFAULT_MODEL for provider in listed}}

    async def all_providers(self, call: Call) -> dict[str, Any]:
        listed = await self._providers(call, installed_only=False)
        connected = [listing.id for listing in await self._listings() if listing.installed]
        default = {provider["id"]: DEFAULT_MODEL for provider in listed}
        return {"all": listed, "default": default, "connected": connected}

    async def agents(self, call: Call) -> list[dict[str, Any]]:
        """First the mode that a session has, under OpenCode's usual name; then every mode that an agent offers."""
        default = await self.default(call)
        modes: dict[str, str] = {DEFAULT_MODE: "The agent in its current mode."}
        for listing in await self._listings():
            if listing.installed:
                agent = AgentId(listing.id)
                for mode in (await self._offer(agent, asks=agent == default)).modes:
                    modes.setdefault(str(mode["id"]), str(mode.get("description") or mode.get("name") or ""))
        return [_agent(name, description) for name, description in modes.items()]

    async def _providers(self, call: Call, *, installed_only: bool) -> list[dict[str, Any]]:
        default = await self.default(call)
        listings = [one for one in await self._listings() if one.installed or not installed_only]
        listings.sort(key=lambda listing: listing.id != default)
        offers = await asyncio.gather(
            *(self._offer(AgentId(one.id), asks=one.id == default and one.installed) for one in listings)
        )
        return [_provider(listing, offer) for listing, offer in zip(listings, offers, strict=True)]

    async def _listings(self) -> list[AgentListing]:
        return await asyncio.to_thread(lambda: [self._catalog.describe(agent) for agent in self._catalog.ids()])

    async def _offer(self, agent: AgentId, *, asks: bool) -> Offer:
        """What the agent offers: asked of the default agent, remembered of others, so that a look starts one only."""
        try:
            known = await self._probe.remembered(agent)
            if known is None and asks:
                async with asyncio.timeout(_PROBE_SECONDS):
                    known = await self._probe.offer(agent)
        except (SandboxAgentError, TimeoutError):
            known = None
        return known or _NOTHING


def _provider(listing: AgentListing, offer: Offer) -> dict[str, Any]:
    models = {DEFAULT_MODEL: _model(listing.id, DEFAULT_MODEL, f"{listing.name} default")}
    for choice in offer.models:
        name = str(choice["id"])
        models[name] = _model(listing.id, name, str(choice.get("name") or name))
    return {"id": listing.id, "name": listing.name, "source": "custom", "env": [], "options": {}, "models": models}


def _model(agent: str, model: str, name: str) -> dict[str, Any]:
    media = {"text": True, "audio": False, "image": True, "video": False, "pdf": False}
    return {
        "id": model,
        "providerID": agent,
        "name": name,
        "api": {"id": model, "url": "", "npm": ""},
        "capabilities": {
            "temperature": False,
            "reasoning": True,
            "attachment": True,
            "toolcall": True,
            "input": media,
            "output": {**media, "image": False},
            "interleaved": False,
        },
        "cost": {"input": 0, "output": 0, "cache": {"read": 0, "write": 0}},
        "limit": {"context": _CONTEXT, "output": 0},
        "status": "active",
        "options": {},
        "headers": {},
        "release_date": "",
    }


def _agent(name: str, description: str) -> dict[str, Any]:
    anything = [{"permission": "*", "pattern": "*", "action": "ask"}]
    return {
        "name": name,
        "description": description,
        "mode": "primary",
        "native": True,
        "permission": anything,
        "options": {},
    }
