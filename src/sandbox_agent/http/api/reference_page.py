"""The OpenAPI document as a page to read, without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import msgspec

from sandbox_agent.http.access.auth import page_headers
from sandbox_agent.http.asgi.messages import HTML, Response

_STYLE = (
    "body{font:16px/1.55 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c2330}"
    "h2{margin-top:2.5rem;border-bottom:1px solid #dde1e7}article{margin:1.5rem 0;padding:1rem;border:1px solid "
    "#dde1e7;border-radius:6px}h3{margin:0;font:600 1rem ui-monospace,monospace}table{border-collapse:collapse;"
    "margin:.5rem 0}td,th{border:1px solid #dde1e7;padding:.2rem .6rem;text-align:left;vertical-align:top}"
    "pre{background:#f6f7f9;padding:.75rem;overflow:auto;border-radius:4px;font-size:.85rem}"
    "b.get{color:#0b6b3a}b.post{color:#0b4f9e}b.put{color:#8a5a00}b.delete{color:#a3201d}"
    "nav a{margin-right:1rem}code{font-family:ui-monospace,monospace;font-size:.9em}"
)


def render_reference(document: dict[str, Any]) -> Response:
    info = document["info"]
    tags = [tag["name"] for tag in document["tags"]]
    sections = "".join(_section(document, tag) for tag in tags)
    links = "".join(f'<a href="#{escape(tag)}">{escape(tag)}</a>' for tag in [*tags, "types"])
    body = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(info["title"])} API</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>'
        f"<h1>{escape(info['title'])} API {escape(info['version'])}</h1><p>{_words(info['description'])}</p>"
        f'<p>OpenAPI document: <a href="/v1/openapi.json">/v1/openapi.json</a> · <a href="docs/">Documentation</a></p>'
        f"<nav>{links}</nav>"
        f"{sections}{_types(document)}</body></html>"
    )
    return Response(200, body.encode(), HTML, page_headers(_STYLE))


def _section(document: dict[str, Any], tag: str) -> str:
    articles = [
        _article(method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if tag in operation["tags"]
    ]
    return f'<h2 id="{escape(tag)}">{escape(tag)}</h2>{"".join(articles)}'


def _article(method: str, path: str, operation: dict[str, Any]) -> str:
    title = f'<b class="{method}">{method.upper()}</b> {escape(path)}'
    parts = [f'<article id="{escape(operation["operationId"])}"><h3>{title}</h3><p>{_words(operation["summary"])}.</p>']
    if text := operation.get("description"):
        parts.append(f"<p>{_words(text)}</p>")
    if parameters := operation["parameters"]:
        rows = [
            (p["name"], p["in"], _kind(p["schema"]), "yes" if p["required"] else "", p.get("description", ""))
            for p in parameters
        ]
        parts.append(_table(("Name", "In", "Type", "Required", "Description"), rows))
    if body := operation.get("requestBody"):
        parts.append(f"<p>Request body: {_media(body['content'])}</p>{_example(body['content'])}")
    responses = [
        (status, response["description"], _media(response.get("content", {}), plain=True))
        for status, response in operation["responses"].items()
    ]
    parts.append(_table(("Status", "Description", "Content type"), responses))
    done = next(iter(operation["responses"].values()))
    parts.append(_example(done.get("content", {})))
    return "".join([*parts, "</article>"])


def _types(document: dict[str, Any]) -> str:
    schemas = document["components"]["schemas"]
    shown = "".join(
        f'<article id="type-{escape(name)}"><h3>{escape(name)}</h3><pre>{_pretty(schema)}</pre></article>'
        for name, schema in schemas.items()
    )
    return f'<h2 id="types">Types</h2>{shown}'


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    used = [index for index in range(len(head)) if any(row[index] for row in rows)]
    cells = "".join(f"<th>{escape(head[index])}</th>" for index in used)
    lines = "".join("<tr>" + "".join(f"<td>{_words(row[index])}</td>" for index in used) + "</tr>" for row in rows)
    return f"<table><tr>{cells}</tr>{lines}</table>"


def _kind(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    return str(schema.get("type", "any"))


def _media(content: dict[str, Any], *, plain: bool = False) -> str:
    said = []
    for media, value in content.items():
        reference = value["schema"].get("$ref", "").rpartition("/")[2]
        link = f' <a href="#type-{escape(reference)}">{escape(reference)}</a>' if reference and not plain else ""
        said.append((media if plain else f"<code>{escape(media)}</code>") + link)
    return ", ".join(said)


def _example(content: dict[str, Any]) -> str:
    for value in content.values():
        if "example" in value:
            return f"<pre>{_pretty(value['example'])}</pre>"
    return ""


def _pretty(value: Any) -> str:
    return escape(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def _words(text: str) -> str:
    """Text with its `code` marked as such."""
    pieces = escape(text).split("`")
    return "".join(f"<code>{piece}</code>" if index % 2 else piece for index, piece in enumerate(pieces))
