"""A small MCP server over stdio: one tool, `secret_word`, and a note of what it was started with."""

from __future__ import annotations

import os
from pathlib import Path

from mcp.server.fastmcp import FastMCP  # type: ignore[import-not-found]  # in an environment of its own

server = FastMCP("words")


@server.tool()  # type: ignore[untyped-decorator]
def secret_word() -> str:
    """Tell the secret word."""
    note = os.environ.get("WORDS_NOTE")
    if note:
        Path(note).write_text(f"called with {os.environ.get('WORDS_KEY', 'no key')}\n")
    return "xylophone"


if __name__ == "__main__":
    server.run()
