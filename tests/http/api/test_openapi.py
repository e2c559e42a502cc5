"""The OpenAPI document: valid, true, and the same under docs/."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import jsonschema  # type: ignore[import-untyped]
import pytest

from sandbox_agent.http.api import openapi
from sandbox_agent.http.api.reference import pretty
from sandbox_agent.http.api.removed import REMOVED
from sandbox_agent.http.asgi.routes import Door, Endpoint
from sandbox_agent.http.doors.opencode.door import PREFIX
from support.rpc import connected
from support.served import BEARER, TOKEN, empty_registry, served
from support.server import Server
from support.surface import route_table

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return openapi.build_document(route_table())


def test_the_copy_under_docs_is_the_document(document: dict[str, Any]) -> None:
    """To bring it up to date, run this test with WRITE_DOCS=1."""
    path = ROOT / "docs" / "openapi.json"
    if os.environ.get("WRITE_DOCS"):
        path.write_bytes(pretty(document))
    assert path.read_bytes() == pretty(document)


def test_the_served_document_is_the_one_of_the_table(http: httpx.Client, document: dict[str, Any]) -> None:
    answer = http.get("/v1/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    assert answer.content == pretty(document)


def test_every_route_is_described_but_the_pages(document: dict[str, Any]) -> None:
    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    table = set()
    for entry in route_table():
        if isinstance(entry, Door) and entry.path.startswith(PREFIX):
            continue  # OpenCode's protocol, which it describes itself
        if isinstance(entry, Door):
            table |= {(method, entry.path) for method in entry.methods}
        elif isinstance(entry, Endpoint) and entry.path.startswith("/v1"):
            table.add((entry.method, entry.path))
    removed = {(method, path) for method, path, _ in REMOVED}
    assert described == table | removed
    deprecated = {
        (method.upper(), path)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if operation.get("deprecated")
    }
    assert deprecated == removed


@pytest.mark.parametrize(("method", "path", "replacement"), REMOVED)
def test_a_route_that_went_is_described_with_its_410(
    http: httpx.Client, document: dict[str, Any], method: str, path: str, replacement: str
) -> None:
    operation = document["paths"][path][method.lower()]
    assert replacement in operation["summary"]
    assert set(operation["responses"]) == {"401", "403", "410", "503"}
    schema = operation["responses"]["410"]["content"]["application/problem+json"]["schema"]
    answer = http.request(method, re.sub(r"{\w+}", "x", path))
    jsonschema.Draft202012Validator({**schema, "components": document["components"]}).validate(answer.json())


def test_every_reference_leads_somewhere_and_every_name_is_unique(document: dict[str, Any]) -> None:
    text = pretty(document).decode()
    schemas = set(document["components"]["schemas"])
    assert set(re.findall(r'"#/components/schemas/([^"]+)"', text)) <= schemas
    names = [op["operationId"] for methods in document["paths"].values() for op in methods.values()]
    assert len(names) == len(set(names))


def test_every_example_fits_its_schema(document: dict[str, Any]) -> None:
    checked = 0
    for methods in document["paths"].values():
        for operation in methods.values():
            bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
            for content in [value for body in bodies for value in body.get("content", {}).values()]:
                if "example" in content:
                    schema = {**content["schema"], "components": document["components"]}
                    jsonschema.Draft202012Validator(schema).validate(content["example"])
                    checked += 1
    assert checked >= 15


async def test_what_is_answered_fits_what_is_described(
    shared_server: Server, root: Path, document: dict[str, Any]
) -> None:
    (root / "described").write_text("x")
    async with connected(shared_server.url) as rpc:
        session = await rpc.new_session(str(root))
        await rpc.prompt(session, "hello")
        paths = {
            "/v1/health": "/v1/health",
            "/v1/agents": "/v1/agents",
            "/v1/agents/{agent}": "/v1/agents/mock?config=true",
            "/v1/agents/{agent}/logs": "/v1/agents/mock/logs",
            "/v1/sessions": "/v1/sessions",
            "/v1/sessions/{id}": f"/v1/sessions/{session}",
            "/v1/fs/entries": f"/v1/fs/entries?path={root}",
            "/v1/fs/stat": f"/v1/fs/stat?path={root}/described",
        }
        for template, path in paths.items():
            answer = await rpc.http.get(path, timeout=30)
            assert answer.status_code == 200
            content = document["paths"][template]["get"]["responses"]["200"]["content"]
            schema = {**content["application/json"]["schema"], "components": document["components"]}
            jsonschema.Draft202012Validator(schema).validate(answer.json())


def test_the_reference_page_shows_every_operation(http: httpx.Client, document: dict[str, Any]) -> None:
    page = http.get("/docs").text
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert f'<b class="{method}">{method.upper()}</b> {path}' in page
            assert f'id="{operation["operationId"]}"' in page


def test_the_guide_names_every_route(document: dict[str, Any]) -> None:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            page = "migration.md" if operation.get("deprecated") else "api.md"
            named = f"`{method.upper()} {path}`"
            assert named in (ROOT / "docs" / page).read_text(), f"docs/{page} lacks {named}"


@pytest.mark.timeout(180)
@pytest.mark.promise("P-limit-8")
def test_schemathesis_finds_no_server_error_and_no_answer_that_is_not_described(
    tmp_path: Path, document: dict[str, Any]
) -> None:
    command = Path(sys.executable).with_name("schemathesis")
    assert command.exists() or shutil.which("schemathesis"), "schemathesis is not installed"
    root = tmp_path / "root"
    root.mkdir()
    allowed = ["2xx", "3xx", "4xx", "501"]  # 501 is the transport's own answer to a batch on /acp
    (tmp_path / "schemathesis.toml").write_text(f"[checks.not_a_server_error]\nexpected-statuses = {allowed}\n")
    flags = ["--fs-root", str(root), "--token", TOKEN]
    env = {**empty_registry(tmp_path), "SANDBOX_AGENT_REQUIRE_PREINSTALL": "1"}
    with served(tmp_path / "home", *flags, env=env) as server:
        ended = subprocess.run(
            [
                str(command),
                "run",
                f"{server.url}/v1/openapi.json",
                "--header",
                f"Authorization: {BEARER['Authorization']}",
                "--checks",
                "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
                "--phases",
                "examples,coverage,fuzzing",
                "--max-examples",
                "40",
                "--seed",
                "4",
                "--request-timeout",
                "20",
                *[word for name in _not_for_fuzzing(document) for word in ("--exclude-operation-id", name)],
                "--no-color",
                "--generation-database",
                "none",
            ],
            cwd=tmp_path,
            env={
                **os.environ,
                "HOME": str(tmp_path),
                "PYTHONPATH": str(ROOT / "tests"),
                "SCHEMATHESIS_HOOKS": "support.schemathesis_hooks",
                "FUZZ_ROOT": str(root),
            },
            capture_output=True,
            text=True,
            timeout=170,
        )
        log = server.log_text()
    assert ended.returncode == 0, ended.stdout[-6000:] + ended.stderr[-2000:]
    assert "Traceback" not in log


def _not_for_fuzzing(document: dict[str, Any]) -> list[str]:
    """What would install, and streams, which do not end by themselves."""
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    streams = [op["operationId"] for op in operations if "text/event-stream" in _media(op)]
    return ["installAgent", *streams]


def _media(operation: dict[str, Any]) -> list[str]:
    return [media for answer in operation["responses"].values() for media in answer.get("content", ())]
