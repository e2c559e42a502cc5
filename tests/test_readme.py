"""The README's walk-through, run as a reader would run it."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from support.server import Server

README = Path(__file__).parent.parent / "README.md"


async def test_the_curl_walk_through_runs_a_whole_turn(server: Server, tmp_path: Path) -> None:
    script = re.search(r"```bash\n(.*?)```", README.read_text(), re.DOTALL)
    assert script is not None
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-eu",
        "-c",
        script[1],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "URL": server.url},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(30):
        output, _ = await process.communicate()
    text = output.decode()
    assert process.returncode == 0, text
    assert '{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}' in text
    assert "event: message\nid: 1\ndata: {" in text
    assert '"status":"completed"' in text
    assert '"hasMore":false' in text
