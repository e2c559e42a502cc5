"""What every door does when serving a request fails."""

from __future__ import annotations

from collections.abc import Awaitable

from sandbox_agent.errors import SandboxAgentError, UnknownAgent
from sandbox_agent.http.asgi.problems import Scope, Send, send_problem
from sandbox_agent.http.asgi.requests import ClientGone


async def answer_failures(serving: Awaitable[None], scope: Scope, send: Send) -> None:
    """Errors become problems. An agent that does not exist is the client's mistake here, not a missing page."""
    try:
        await serving
    except UnknownAgent as error:
        await send_problem(send, scope, error, status=400)
    except SandboxAgentError as error:
        await send_problem(send, scope, error)
    except ClientGone:
        pass
