"""The parts of uvicorn that we use: a socket's protocol, and the server around it.

Its package also imports a command line, supervisors that watch files and processes, and ways to configure logging: a
tenth of what our server takes to start, and as much of its memory. So it is imported here first, without these."""

from __future__ import annotations

from sandbox_agent.slim_imports import with_empty

_UNUSED = {"uvicorn.main": ("Server", "main", "run"), "logging.config": (), "configparser": ("RawConfigParser",)}

with with_empty(_UNUSED):
    import uvicorn
    from uvicorn.config import Config
    from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
    from uvicorn.server import Server, ServerState

if uvicorn.Server is None:
    vars(uvicorn).update(Server=Server)

__all__ = ["STATUS_LINE", "Config", "HttpToolsProtocol", "RequestResponseCycle", "Server", "ServerState"]
