"""`/v1/agents`: which agents there are and in what state, their logs."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

import msgspec

from sandbox_agent.agents import AgentListing, Catalog
from sandbox_agent.core.ids import AgentId
from sandbox_agent.errors import AgentError, InstallError, InvalidParams, UnknownAgent
from sandbox_agent.http.asgi.exchange import Exchange
from sandbox_agent.http.asgi.routes import Operation
from sandbox_agent.hub.agents.status import ServerStatus, capabilities, server_status, stderr_lines
from sandbox_agent.hub.hub import Hub
from sandbox_agent.redaction import Redactor
from sandbox_agent.version import __version__


class ConfigQuery(msgspec.Struct, rename="camel"):
    """`config` asks installed agents for their models, modes and options now, and starts them if needed."""

    config: bool = False


class LogsQuery(msgspec.Struct, rename="camel"):
    tail: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 100


class AgentInfo(AgentListing, frozen=True, kw_only=True, rename="camel"):
    """`source`: where the installed agent came from. `verified`: whether its checksum or registry was checked.

    `models`, `modes` and `configOptions` are what the agent last offered; null if that is not known. `?config=true`
    asks the agent."""

    capabilities: dict[str, Any]
    """From the agent's `initialize` response once it has started, and the booleans of the previous API."""
    server_status: ServerStatus
    models: list[dict[str, Any]] | None = None
    modes: list[dict[str, Any]] | None = None
    config_options: list[dict[str, Any]] | None = None
    config_error: str | None = None


class AgentList(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    agents: list[AgentInfo]


class AgentLogs(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The agent's stderr, with known secrets redacted. Of a long log, the middle is not kept."""

    agent: str
    status: Literal["running", "stopped", "error"]
    lines: list[str]
    total_lines: int


LIST_AGENTS = Operation(
    "listAgents", "List agents", "agents", query=ConfigQuery, returns=AgentList, errors=(InvalidParams,)
)
SHOW_AGENT = Operation(
    "showAgent", "Get an agent", "agents", query=ConfigQuery, returns=AgentInfo, errors=(InvalidParams, UnknownAgent)
)
READ_LOGS = Operation(
    "readAgentLogs",
    "Get the last lines of an agent's stderr",
    "agents",
    query=LogsQuery,
    returns=AgentLogs,
    errors=(InvalidParams, UnknownAgent),
)


class AgentsApi:
    def __init__(self, hub: Hub, catalog: Catalog, redactor: Redactor) -> None:
        self._hub = hub
        self._catalog = catalog
        self._redactor = redactor
        self._probe = hub.probe

    async def list(self, exchange: Exchange) -> AgentList:
        wanted = exchange.query(ConfigQuery)
        agents = await asyncio.gather(*(self._info(agent, asks_config=wanted.config) for agent in self._catalog.ids()))
        return AgentList(agents=list(agents))

    async def show(self, exchange: Exchange) -> AgentInfo:
        wanted = exchange.query(ConfigQuery)
        return await self._info(AgentId(exchange.path("agent")), asks_config=wanted.config)

    async def logs(self, exchange: Exchange) -> AgentLogs:
        wanted = exchange.query(LogsQuery)
        agent = AgentId((await self._listing(AgentId(exchange.path("agent")))).id)
        lines, total = stderr_lines(self._hub.agents.all_of(agent), wanted.tail)
        return AgentLogs(
            agent=agent,
            status=self._status(agent).status,
            lines=[self._redactor.clean(line) for line in lines],
            total_lines=total,
        )

    async def _listing(self, agent: AgentId) -> AgentListing:
        """Raises UnknownAgent."""
        listing = await asyncio.to_thread(self._catalog.describe, agent)
        is_builtin = listing.source == "builtin" and listing.version is None
        return msgspec.structs.replace(listing, version=__version__) if is_builtin else listing

    async def _info(self, agent: AgentId, *, asks_config: bool) -> AgentInfo:
        listing = await self._listing(agent)
        offered = await self._offered(agent, asks=asks_config) if listing.installed else {}
        return AgentInfo(
            **msgspec.structs.asdict(listing),
            **offered,
            capabilities=capabilities(self._hub.agents.all_of(agent), listing.isolation),
            server_status=self._status(agent),
        )

    async def _offered(self, agent: AgentId, *, asks: bool) -> dict[str, Any]:
        """Models, modes and options, asked for or remembered; or why they could not be asked for."""
        try:
            offer = await (self._probe.offer(agent) if asks else self._probe.remembered(agent))
        except (AgentError, InstallError) as error:
            return {"config_error": self._redactor.clean(error.detail)}
        if offer is None:
            return {}
        return {"models": offer.models, "modes": offer.modes, "config_options": offer.config_options}

    def _status(self, agent: AgentId) -> ServerStatus:
        status = server_status(self._hub.agents.all_of(agent), self._hub.agents.tally(agent))
        if status.last_error is None:
            return status
        return msgspec.structs.replace(status, last_error=self._redactor.clean(status.last_error))
