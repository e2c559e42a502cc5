"""A server behind TLS with a private authority: believed when it is named; else its certificate is the complaint."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sandbox_agent import SandboxAgent
from sandbox_agent.errors import ConfigError, UntrustedCertificate
from support.command import Shell
from support.node import require_tool
from support.server import running_server

pytestmark = pytest.mark.timeout(120)


async def test_a_private_authority_is_believed_where_it_is_named_and_only_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = _make_certificates(tmp_path)
    async with running_server(tmp_path / "home") as server, _behind_tls(server.url, tmp_path) as url:
        async with SandboxAgent.connect(url) as sandbox:
            with pytest.raises(UntrustedCertificate, match="unable to get local issuer certificate"):
                await sandbox.create_session(agent="mock", cwd="/tmp")  # at once, though servers are waited for
        async with SandboxAgent.connect(url, ca_file=authority) as sandbox:
            session = await sandbox.create_session(agent="mock", cwd="/tmp")
            assert await session.prompt("hello").text() == "hello"
        with pytest.raises(ConfigError, match="holds no certificate"):
            await SandboxAgent.connect(url, ca_file=tmp_path / "server.key").__aenter__()
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        async with SandboxAgent.connect(url) as sandbox:
            assert (await sandbox.health())["status"] == "ok"

        shell = Shell(tmp_path / "shell", url)
        refused = await asyncio.to_thread(shell.run, "run", "--agent", "mock", "hello")
        assert refused.returncode == 3
        said = refused.stderr.decode()
        assert f"error: the certificate of {url} is not trusted: unable to get local issuer certificate" in said
        assert "--ca-file" in said
        done = await asyncio.to_thread(shell.run, "run", "--agent", "mock", "hello", "--ca-file", str(authority))
        assert (done.returncode, b"hello" in done.stdout) == (0, True)


def _make_certificates(folder: Path) -> Path:
    """An authority and a certificate of it for 127.0.0.1; gives the authority's file."""
    openssl = require_tool("openssl")
    authority = ["-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Ours"]
    extension = "subjectAltName=IP:127.0.0.1"
    request = ["-newkey", "rsa:2048", "-nodes", "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=server"]
    signing = [
        "-req",
        "-in",
        "server.csr",
        "-CA",
        "ca.pem",
        "-CAkey",
        "ca.key",
        "-CAcreateserial",
        "-out",
        "server.pem",
    ]
    (folder / "names").write_text(extension)
    for command in (
        ["req", *authority],
        ["req", *request],
        ["x509", *signing, "-out", "server.pem", "-extfile", "names"],
    ):
        subprocess.run([openssl, *command], cwd=folder, check=True, capture_output=True, timeout=60)
    return folder / "ca.pem"


@asynccontextmanager
async def _behind_tls(url: str, folder: Path) -> AsyncIterator[str]:
    """What a proxy does: TLS in front, plain HTTP behind."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    port = int(url.rpartition(":")[2])

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(_copy(reader, server_writer), _copy(server_reader, writer))

    proxy = await asyncio.start_server(relay, "127.0.0.1", 0, ssl=context)
    try:
        yield f"https://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
    finally:
        proxy.close()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while piece := await source.read(65536):
            target.write(piece)
            await target.drain()
    except (ConnectionError, ssl.SSLError):
        pass
    finally:
        target.close()
