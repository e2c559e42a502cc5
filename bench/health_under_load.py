"""How long `/v1/health` takes while a gibibyte is uploaded and a hundred thousand events stream.

    python bench/health_under_load.py

Prints the median, the 95th percentile and the slowest answer, idle and under load, and the server's peak memory.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.rpc import connected
from support.server import Server, running_server

GIB = 1 << 30
EVENTS = 100_000
PAUSE = 0.005


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        (home / "root").mkdir()
        async with running_server(home, "--fs-root", str(home / "root")) as server:
            async with httpx.AsyncClient(base_url=server.url, trust_env=False, timeout=60) as http:
                idle = await measure(http, asyncio.create_task(asyncio.sleep(2)))
                load = asyncio.create_task(put_load(server, home / "root" / "big"))
                busy = await measure(http, load)
                uploading, streaming = load.result()
            memory = peak_memory(server.pid)
    print(f"idle     {summary(idle)}")
    print(f"loaded   {summary(busy)}")
    print(f"upload   1 GiB in {uploading:.1f} s; stream {EVENTS} events in {streaming:.1f} s; peak {memory} MiB")


async def measure(http: httpx.AsyncClient, until: asyncio.Task[object]) -> list[float]:
    """Times in milliseconds of one request after another, for as long as the task runs."""
    times = []
    while not until.done():
        started = time.perf_counter()
        (await http.get("/v1/health")).raise_for_status()
        times.append((time.perf_counter() - started) * 1000)
        await asyncio.sleep(PAUSE)
    return times


async def put_load(server: Server, path: Path) -> tuple[float, float]:
    async with asyncio.TaskGroup() as group:
        uploading = group.create_task(upload(server, path))
        streaming = group.create_task(stream(server, path.parent))
    return uploading.result(), streaming.result()


async def upload(server: Server, path: Path) -> float:
    """By curl, in a process of its own: this one has enough to do."""
    started = time.perf_counter()
    source = path.with_name("source")
    with source.open("wb") as file:
        file.truncate(GIB)
    url = f"{server.url}/v1/fs/file?path={path}"
    command = ["curl", "--silent", "--fail", "--upload-file", str(source), url]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.DEVNULL)
    if await process.wait() != 0:
        raise SystemExit("the upload failed")
    return time.perf_counter() - started


async def stream(server: Server, cwd: Path) -> float:
    async with connected(server.url) as rpc:
        session = await rpc.new_session(str(cwd))
        started = time.perf_counter()
        headers = {"X-ACP-Connection-Id": rpc.id, "Accept": "text/event-stream"}
        async with rpc.http.stream("GET", "/v1/rpc", headers=headers, timeout=None) as response:
            prompt = asyncio.create_task(rpc.prompt(session, f"chunks {EVENTS} 100"))
            await counted(response.aiter_raw())
            await prompt
        return time.perf_counter() - started


async def counted(chunks: AsyncIterator[bytes]) -> None:
    """Return when every event has come. A mark may be cut in two by the end of a chunk."""
    mark, seen, tail = b"agent_message_chunk", 0, b""
    async for chunk in chunks:
        joined = tail + chunk
        seen += joined.count(mark)
        tail = joined[1 - len(mark) :]
        if seen >= EVENTS:
            return


def summary(times: list[float]) -> str:
    p50, p95 = statistics.median(times), statistics.quantiles(times, n=20)[-1]
    return f"p50 {p50:6.1f} ms  p95 {p95:6.1f} ms  max {max(times):6.1f} ms  ({len(times)} requests)"


def peak_memory(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) >> 10


if __name__ == "__main__":
    asyncio.run(main())
