"""WebSockets to other nodes, at the addresses that they have registered."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, WebSocketException

from sandbox_agent.errors import NodeUnreachable

DIAL_SECONDS, CLOSE_SECONDS = 5.0, 1.0


async def open_socket(
    node: str, url: str, path: str, headers: Mapping[str, str], *, ca_file: str | None, **manners: Any
) -> ClientConnection:
    """Raises NodeUnreachable, and InvalidStatus where the node has answered and refuses."""
    scheme = {"http": "ws", "https": "wss"}.get(urlsplit(url).scheme)
    if scheme is None:
        raise NodeUnreachable(f"node {node} has registered no address that can be used: {url!r}", node=node)
    context = ssl.create_default_context(cafile=ca_file) if scheme == "wss" else None
    address = f"{scheme}://{url.split('://', 1)[1].rstrip('/')}{path}"
    try:
        return await connect(address, additional_headers=headers, ssl=context, proxy=None, compression=None, **manners)
    except InvalidStatus:
        raise
    except (WebSocketException, OSError, TimeoutError) as error:
        words = str(error) or type(error).__name__
        raise NodeUnreachable(f"node {node} cannot be reached at {url}: {words}", node=node) from None


def refused(node: str, url: str, status: int) -> NodeUnreachable:
    """Why a node that answers cannot be used by this one."""
    hint = "cluster_token must be the same at all nodes" if status in (401, 403) else "see its log"
    return NodeUnreachable(f"node {node} at {url} refuses this node: HTTP {status}; {hint}", node=node)
