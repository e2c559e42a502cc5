"""Behind nginx, configured as docs/deploy.md says, everything is there over HTTP/2."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect

from support.doors import initialize_params
from support.node import ROOT, require_tool, run_program
from support.rpc import DEADLINE, prompt_params, sse_blocks
from support.server import Server

INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize_params("mock")}


def request(key: int, method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": key, "method": method, "params": params}


def printed_config() -> str:
    text = (ROOT / "docs" / "deploy.md").read_text()
    found = re.search(r"```nginx\n(.*?)```", text, re.DOTALL)
    assert found
    return found[1]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def certificate(folder: Path) -> tuple[Path, Path]:
    openssl = require_tool("openssl")
    key, cert = folder / "key.pem", folder / "cert.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    kind = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    await run_program([openssl, *kind, *subject, "-keyout", str(key), "-out", str(cert)], cwd=folder)
    return key, cert


@pytest.fixture
async def front(own_server: Server, tmp_path: Path) -> AsyncIterator[str]:
    """The address of an nginx in front of a server."""
    nginx = require_tool("nginx")
    folder = tmp_path / "nginx"
    (folder / "logs").mkdir(parents=True)
    key, cert = await certificate(folder)
    command = [nginx, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    for _ in range(5):  # a port that was free may be taken a moment later
        port = free_port()
        (folder / "nginx.conf").write_text(config_for(folder, key, cert, port, own_server.port))
        process = await asyncio.create_subprocess_exec(*command, "-g", "daemon off;")
        if await is_up(process, port):
            break
    else:
        pytest.fail((folder / "error.log").read_text())
    try:
        yield f"https://127.0.0.1:{port}"
    finally:
        process.terminate()
        await process.wait()


def config_for(folder: Path, key: Path, cert: Path, port: int, server_port: int) -> str:
    """The printed one, with ports and paths of this test."""
    names = ("proxy", "client_body", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"    {name}_temp_path {folder}/{name};\n" for name in names)
    config = (
        printed_config()
        .replace("http {", f"http {{\n    access_log off;\n{temporary}", 1)
        .replace("listen 443", f"listen 127.0.0.1:{port}")
        .replace("127.0.0.1:2468", f"127.0.0.1:{server_port}")
        .replace("/etc/ssl/certs/sandbox-agent.pem", str(cert))
        .replace("/etc/ssl/private/sandbox-agent.key", str(key))
        .replace("worker_processes auto", "worker_processes 1")
        .replace("pid nginx.pid", f"pid {folder}/nginx.pid")
    )
    return "user root;\n" + config if os.geteuid() == 0 else config


async def is_up(process: asyncio.subprocess.Process, port: int) -> bool:
    """Whether it serves the port; False when it ended instead."""
    async with asyncio.timeout(DEADLINE):
        while process.returncode is None:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                return True
    return False


def trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def test_curl_runs_a_handshake_over_http2(front: str, tmp_path: Path) -> None:
    curl = require_tool("curl")
    body = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}'
    sent = ["-H", "Content-Type: application/json", "-d", body, "-D", "-"]
    shown = await run_program(
        [curl, "-sk", "--http2", "--noproxy", "*", *sent, f"{front}/acp?agent=mock"], cwd=tmp_path
    )
    assert shown.startswith("HTTP/2 200")
    assert "acp-connection-id: conn_" in shown.lower()
    assert '"protocolVersion":1' in shown


async def test_streams_of_many_sessions_share_one_http2_connection(front: str, tmp_path: Path) -> None:
    curl = require_tool("curl")
    async with httpx.AsyncClient(base_url=front, verify=trusting(), timeout=DEADLINE, trust_env=False) as http:
        opened = await http.post("/acp", json=INITIALIZE)
        headers = {"Acp-Connection-Id": opened.headers["Acp-Connection-Id"]}
        for key in range(1, 9):
            await http.post(
                "/acp", json=request(key, "session/new", {"cwd": "/tmp", "mcpServers": []}), headers=headers
            )
        sessions: set[str] = set()
        async with http.stream("GET", "/acp", headers={**headers, "Accept": "text/event-stream"}) as response:
            async for blocks in sse_blocks(response.aiter_bytes()):
                sessions |= set(re.findall(r'"result":{"sessionId":"([^"]+)"', b"".join(blocks).decode()))
                if len(sessions) == 8:
                    break

        one = ["-skN", "--http2", "--noproxy", "*", "-w", "\n%{http_version} %{num_connects}\n", f"{front}/acp"]
        named = [["-H", f"{name}: {value}"] for name, value in headers.items()]
        streams = [[*one, *named[0], "-H", f"Acp-Session-Id: {session}"] for session in sorted(sessions)]
        command = [curl, "-Z", *streams[0], *(part for stream in streams[1:] for part in ("--next", *stream))]
        followed = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        assert followed.stdout is not None
        for key, session in enumerate(sorted(sessions)):
            prompt = request(100 + key, "session/prompt", prompt_params(session, f"in session {key}"))
            await http.post("/acp", json=prompt, headers=headers)
        shown = ""
        async with asyncio.timeout(DEADLINE):
            while shown.count('"stopReason"') < 8:
                shown += (await followed.stdout.read(1 << 16)).decode()
            assert (await http.delete("/acp", headers=headers)).status_code == 202
            shown += (await followed.stdout.read()).decode()
            await followed.wait()
    ends = re.findall(r"^(\d) (\d)$", shown, re.MULTILINE)
    assert [version for version, _ in ends] == ["2"] * 8
    assert sum(int(connects) for _, connects in ends) == 1


async def test_events_pass_the_proxy_as_they_come(front: str) -> None:
    async with httpx.AsyncClient(base_url=front, verify=trusting(), timeout=DEADLINE, trust_env=False) as http:
        opened = await http.post("/v1/rpc", json=INITIALIZE)
        headers = {"X-ACP-Connection-Id": opened.headers["X-ACP-Connection-Id"]}
        new = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/tmp", "mcpServers": []}}
        session = (await http.post("/v1/rpc", json=new, headers=headers)).json()["result"]["sessionId"]
        prompt = {"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": prompt_params(session, "slow")}
        await http.post("/v1/rpc", json=prompt, headers={**headers, "Prefer": "respond-async"})
        async with http.stream("GET", "/v1/rpc", headers=headers) as response:
            async for chunk in response.aiter_bytes():
                if b"tick 3" in chunk:
                    break
        cancel = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}
        assert (await http.post("/v1/rpc", json=cancel, headers=headers)).status_code == 202


async def test_websocket_passes_the_proxy(front: str) -> None:
    address = front.replace("https", "wss") + "/acp?agent=mock"
    async with connect(address, ssl=trusting(), proxy=None) as connection:
        await connection.send('{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}')
        async with asyncio.timeout(DEADLINE):
            assert '"protocolVersion":1' in str(await connection.recv())


async def test_h2load_gets_nothing_but_success(front: str, tmp_path: Path) -> None:
    h2load = require_tool("h2load")
    shown = await run_program([h2load, "-n", "400", "-c", "4", "-m", "25", f"{front}/v1/health"], cwd=tmp_path)
    assert "Application protocol: h2" in shown
    assert "400 succeeded, 0 failed" in shown
    assert "400 2xx" in shown
