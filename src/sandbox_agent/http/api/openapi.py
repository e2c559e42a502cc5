"""The OpenAPI 3.1 document, made from the route table and the types that serve the requests."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from sandbox_agent.errors import SandboxAgentError
from sandbox_agent.http.api.examples import BODIES, RESPONSES
from sandbox_agent.http.api.removed import REMOVED
from sandbox_agent.http.asgi.routes import Content, Door, Endpoint, Operation
from sandbox_agent.version import __version__

_REF = "#/components/schemas/{name}"
_DESCRIPTION = (
    "Run coding agents and talk to them over HTTP. Conversations use `/v1/rpc` with ACP (JSON-RPC 2.0); the other "
    "endpoints manage agents, sessions and files. Errors are `application/problem+json`. If the server has a token, "
    "every request must send it."
)
_STATUS = {
    200: "OK",
    201: "Created",
    202: "Accepted; the answer arrives on the stream",
    204: "No content",
    206: "Partial content",
    304: "Not modified",
    507: "Insufficient storage",
}
_COMMON = {401: "Unauthorized", 403: "Host or Origin not allowed", 503: "Service unavailable; try again later"}
_PROBLEM_SCHEMA = {
    "title": "Problem",
    "description": "An error. `type` ends with the kind of error; some kinds have additional members.",
    "type": "object",
    "properties": {
        "type": {"type": "string", "examples": ["urn:sandbox-agent:error:not_found"]},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "retryable": {"type": "boolean"},
        "instance": {"type": "string"},
    },
    "required": ["type", "title", "status", "detail"],
}


_REMOVED_TAG = "removed"
_REMOVED_SCHEMA = {
    "title": "Removed",
    "description": "The endpoint belonged to the previous API. `replacement` names what to use instead.",
    "type": "object",
    "properties": {
        "type": {"const": "urn:sandbox-agent:error:v1_removed"},
        "title": {"type": "string"},
        "status": {"const": 410},
        "detail": {"type": "string"},
        "instance": {"type": "string"},
        "replacement": {"type": ["string", "null"]},
    },
    "required": ["type", "title", "status", "detail", "instance", "replacement"],
}


def build_document(entries: Iterable[Endpoint | Door]) -> dict[str, Any]:
    described = list(_operations(entries))
    types = [t for _, _, op in described for t in (op.body, op.returns) if t is not None and not isinstance(t, Content)]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    by_type = {id(t): schema for t, schema in zip(types, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for method, path, operation in described:
        paths.setdefault(path, {})[method.lower()] = _describe(path, operation, by_type)
    for method, path, replacement in REMOVED:
        paths.setdefault(path, {})[method.lower()] = _describe_removed(method, path, replacement)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Sandbox Agent",
            "version": __version__,
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}, {"cookie": []}, {}],
        "tags": [{"name": name} for name in dict.fromkeys([*(op.tag for _, _, op in described), _REMOVED_TAG])],
        "paths": paths,
        "components": {
            "schemas": {"Problem": _PROBLEM_SCHEMA, "Removed": _REMOVED_SCHEMA, **dict(sorted(components.items()))},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "The server's token (`--token`)."},
                "cookie": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "sandbox-agent-PORT",
                    "description": "Set when a browser signs in.",
                },
            },
        },
    }


def _operations(entries: Iterable[Endpoint | Door]) -> Iterable[tuple[str, str, Operation]]:
    for entry in entries:
        path = re.sub(r":path}", "}", entry.path)
        if isinstance(entry, Door):
            for method, operation in entry.operations.items():
                yield method, path, operation
        elif entry.operation is not None:
            yield entry.method, path, entry.operation


def _describe(path: str, operation: Operation, by_type: dict[int, dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.tag],
        "parameters": [*_path_parameters(path), *_query_parameters(operation.query), *_headers(operation)],
        "responses": _responses(operation, by_type),
    }
    if operation.description:
        found["description"] = operation.description
    if operation.body is not None:
        content = _content(operation.body, by_type, BODIES.get(operation.name))
        found["requestBody"] = {"required": not operation.is_body_optional, "content": content}
    return found


def _describe_removed(method: str, path: str, replacement: str) -> dict[str, Any]:
    gone = {"application/problem+json": {"schema": {"$ref": _REF.format(name="Removed")}}}
    responses = {str(status): _problem(title) for status, title in _COMMON.items()}
    words = re.findall(r"\w+", path.removeprefix("/v1"))
    return {
        "operationId": f"removed{method.capitalize()}{''.join(map(str.capitalize, words))}",
        "summary": f"Removed; use `{replacement}`",
        "deprecated": True,
        "tags": [_REMOVED_TAG],
        "parameters": _path_parameters(path),
        "responses": dict(sorted({**responses, "410": {"description": "Gone", "content": gone}}.items())),
    }


def _path_parameters(path: str) -> list[dict[str, Any]]:
    names = re.findall(r"{(\w+)}", path)
    return [{"name": n, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}} for n in names]


def _query_parameters(shape: type | None) -> list[dict[str, Any]]:
    if shape is None:
        return []
    _, components = msgspec.json.schema_components([shape], ref_template=_REF)
    schema = components[shape.__name__]
    needed = schema.get("required", ())
    return [
        {"name": name, "in": "query", "required": name in needed, "schema": _plain(value)}
        for name, value in schema["properties"].items()
    ]


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """A query's value is there or not, never null."""
    found = {key: value for key, value in schema.items() if not (key == "default" and value is None)}
    choices = [choice for choice in found.pop("anyOf", ()) if choice.get("type") != "null"]
    return {**found, **choices[0]} if len(choices) == 1 else {**found, **({"anyOf": choices} if choices else {})}


def _headers(operation: Operation) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "header", "required": is_needed, "description": text, "schema": {"type": "string"}}
        for name, text, is_needed in operation.headers
    ]


def _responses(operation: Operation, by_type: dict[int, dict[str, Any]]) -> dict[str, Any]:
    done: dict[str, Any] = {"description": _STATUS[operation.status]}
    if operation.returns is not None:
        done["content"] = _content(operation.returns, by_type, RESPONSES.get(operation.name))
    found = {str(operation.status): done}
    for error in operation.errors:
        if isinstance(error, int) and error < 400:
            partial = {"content": done["content"]} if error == 206 else {}
            found[str(error)] = {"description": _STATUS[error], **partial}
        else:
            status, title = (error, _STATUS[error]) if isinstance(error, int) else (error.status, _title(error))
            found.setdefault(str(status), _problem(title))
    for status, title in _COMMON.items():
        found.setdefault(str(status), _problem(title))
    return dict(sorted(found.items()))


def _title(error: type[SandboxAgentError]) -> str:
    return error.title


def _problem(title: str) -> dict[str, Any]:
    schema = {"$ref": _REF.format(name="Problem")}
    return {"description": title, "content": {"application/problem+json": {"schema": schema}}}


def _content(body: Any, by_type: dict[int, dict[str, Any]], example: Any) -> dict[str, Any]:
    if isinstance(body, Content):
        return {media: {"schema": body.schema} for media in body.media}
    shown = {} if example is None else {"example": example}
    return {"application/json": {"schema": by_type[id(body)], **shown}}
