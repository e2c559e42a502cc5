"""docs/clients.md lists the clients that the suite drives, in the versions that it installs."""

from __future__ import annotations

import json
import re
from pathlib import Path

from support.command import Shell, serving
from support.node import CLIENTS, ROOT
from support.pages import require_part, table
from support.samples import samples

STDIO = "`sandbox-agent stdio`"
TESTED = (
    ("@agentclientprotocol/sdk", "npm", "the official TypeScript SDK", ("node",), "`/acp` over HTTP and WebSocket"),
    ("agent-client-protocol", "PyPI", "the official Python SDK", ("dev",), "`/acp` over HTTP and WebSocket"),
    ("@aaif/goose-sdk", "npm", "the client of goose", ("goose",), "`/acp` over HTTP"),
    ("sandbox-agent", "npm", "the SDK of the previous API", ("node",), "`/v1/acp/{server_id}`"),
    ("@opencode-ai/sdk", "npm", "OpenCode's SDK, both clients", ("opencode",), "`/opencode`"),
    ("use-acp", "npm", "React hooks", ("libraries",), "`/acp` over WebSocket"),
    ("acpx", "npm", "a command line", ("node", "acpx"), STDIO),
    ("acp-factory", "npm", "a library", ("libraries",), STDIO),
    ("@mcpc-tech/acp-ai-provider", "npm", "for the AI SDK", ("libraries",), STDIO),
    ("acp-client", "PyPI", "a library", ("acp_client",), STDIO),
    ("openhands-sdk", "PyPI", "its `ACPAgent`", ("openhands",), STDIO),
)
"""Package, registry, what it is, the folders of tests/clients that install it, how it connects."""


def version(package: str, registry: str, folder: str) -> str:
    if registry == "npm":
        lock = json.loads((CLIENTS / folder / "package-lock.json").read_text())
        return str(lock["packages"][f"node_modules/{package}"]["version"])
    path = ROOT / "requirements" / "dev.lock" if folder == "dev" else CLIENTS / folder / "requirements.lock"
    found = re.search(rf"^{re.escape(package)}==([^\s;]+)", path.read_text(), re.MULTILINE)
    assert found, f"{path} does not install {package}"
    return found[1]


def test_every_client_is_listed_with_the_version_that_is_installed() -> None:
    rows = [
        (f"`{package}` ({registry})", what, " and ".join(version(package, registry, at) for at in folders), way)
        for package, registry, what, folders, way in TESTED
    ]
    require_part("clients.md", "clients", table(("Client", "What it is", "Version", "Connects through"), rows))


def test_no_folder_of_clients_is_left_out() -> None:
    folders = {path.name for path in CLIENTS.iterdir() if path.is_dir() and any(path.glob("*lock*"))}
    assert folders == {at for _, _, _, places, _ in TESTED for at in places} - {"dev"}


def test_what_an_editor_is_told_to_run_speaks_acp(tmp_path: Path) -> None:
    (shown,) = (one.text for one in samples("json") if one.page == "clients")
    (entry,) = json.loads(shown)["agent_servers"].values()
    assert (entry["command"], list(entry["env"])) == ("sandbox-agent", ["SANDBOX_AGENT_TOKEN"])
    with serving(tmp_path, "--token", "t0ken") as served:
        here = {"https://sandbox.example.com": served.env["SANDBOX_AGENT_ENDPOINT"], "claude": "mock"}
        args = [here.get(word, word) for word in entry["args"]]
        initialize = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
        shell = Shell(tmp_path / "editor", SANDBOX_AGENT_TOKEN="t0ken")
        answer = json.loads(shell.text(*args, given=json.dumps(initialize) + "\n"))
    assert answer["result"]["agentInfo"]["name"] == "mock"
