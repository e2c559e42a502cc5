"""A web site on loopback that a test can make honest, slow or lying: registry, archives and npm packages."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import sys
import tarfile
import threading
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TINY_AGENT = f"""#!{sys.executable}
import json, sys
if "--version" in sys.argv:
    print("tiny 1.0.0")
    sys.exit()
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        answer = {{"jsonrpc": "2.0", "id": message["id"], "result": {{"protocolVersion": 1}}}}
        print(json.dumps(answer), flush=True)
"""

TINY_NODE_AGENT = """#!/usr/bin/env node
if (process.argv.includes("--version")) { console.log("tiny 1.0.0"); process.exit(0) }
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line)
  if (message.method === "initialize")
    console.log(JSON.stringify({ jsonrpc: "2.0", id: message.id, result: { protocolVersion: 1 } }))
})
"""


@dataclass
class Page:
    """One answer. With `stalled` set, half of the body is sent, `reached` is set, and the rest waits for `stalled`."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    stalled: threading.Event | None = None
    reached: threading.Event = field(default_factory=threading.Event)


class LoopbackSite:
    """Use as a context manager. `pages` maps paths to answers; `hits` counts requests, `unchanged` their 304s."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self.hits: Counter[str] = Counter()
        self.unchanged: Counter[str] = Counter()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.site = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> LoopbackSite:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def stop(self) -> None:
        for page in self.pages.values():
            if page.stalled:
                page.stalled.set()
        if self._thread.is_alive():
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}{path}"

    def publish_registry(self, *agents: dict[str, Any], path: str = "/registry.json") -> str:
        """Serve a registry with these entries and return its address."""
        body = json.dumps({"version": "1.0.0", "agents": list(agents), "extensions": []}).encode()
        self.pages[path] = Page(body, headers={"etag": f'"{hashlib.sha256(body).hexdigest()[:12]}"'})
        return self.url(path)

    def publish_archive(self, path: str, files: Mapping[str, str]) -> str:
        self.pages[path] = Page(zip_of(files) if path.endswith(".zip") else tar_of(files))
        return self.url(path)

    def publish_npm(
        self, name: str, versions: Mapping[str, Mapping[str, str]], *, commands: Mapping[str, str], scripts: Any = None
    ) -> None:
        """Serve an npm package under /npm/, one set of files per version."""
        documents = {}
        for version, files in versions.items():
            package = {"name": name, "version": version, "bin": dict(commands), "scripts": scripts or {}}
            tarball = tar_of(
                {"package/package.json": json.dumps(package), **{f"package/{n}": t for n, t in files.items()}}
            )
            address = f"/npm/{name}/-/{version}.tgz"
            self.pages[address] = Page(tarball)
            digest = base64.b64encode(hashlib.sha512(tarball).digest()).decode()
            documents[version] = {**package, "dist": {"tarball": self.url(address), "integrity": f"sha512-{digest}"}}
        body = {"name": name, "dist-tags": {"latest": list(versions)[-1]}, "versions": documents}
        self.pages[f"/npm/{name}"] = Page(json.dumps(body).encode(), headers={"content-type": "application/json"})


def binary_entry(slug: str, archive: str, *, platform: str, version: str = "1.0.0", **target: Any) -> dict[str, Any]:
    """A registry entry for an archive with the program `bin/tiny` in it."""
    binary = {platform: {"archive": archive, "cmd": "./bin/tiny", "args": [], **target}}
    return {"id": slug, "name": slug, "version": version, "distribution": {"binary": binary}}


def tar_of(files: Mapping[str, str], *, more: Callable[[tarfile.TarFile], None] = lambda _tar: None) -> bytes:
    """A tar.gz with these files, all executable; `more` may add what no honest archive has."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(text.encode()), 0o755
            tar.addfile(member, io.BytesIO(text.encode()))
        more(tar)
    return buffer.getvalue()


def zip_of(files: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as bundle:
        for name, text in files.items():
            item = zipfile.ZipInfo(name)
            item.external_attr = 0o100755 << 16
            bundle.writestr(item, text)
    return buffer.getvalue()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    site: LoopbackSite

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that are killed hang up in the middle: that is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_args: object) -> None:
        pass

    def do_GET(self) -> None:
        site, path = self.server.site, self.path.partition("?")[0].replace("%2f", "/")
        site.hits[path] += 1
        page = site.pages.get(path) or Page(b"nothing here", status=404)
        if page.headers.get("etag", "-") == self.headers.get("if-none-match"):
            site.unchanged[path] += 1
            page = Page(status=304)
        self.send_response(page.status)
        for name, value in page.headers.items():
            self.send_header(name, value)
        if "content-length" not in page.headers:
            self.send_header("content-length", str(len(page.body)))
        self.end_headers()
        if page.stalled is None:
            self.wfile.write(page.body)
            self.close_connection = "content-length" in page.headers
            return
        half = len(page.body) // 2
        self.wfile.write(page.body[:half])
        self.wfile.flush()
        page.reached.set()
        page.stalled.wait(50)
        self.wfile.write(page.body[half:])
