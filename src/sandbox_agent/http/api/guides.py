"""The documentation at `/docs/`: the Markdown of the guides as pages, as text for language models, and `llms.txt`.

The site that `make docs` builds is much larger; it has search, and can be put on any web server."""

from __future__ import annotations

import posixpath
import re
from functools import cached_property
from pathlib import Path

from sandbox_agent.errors import NotFound
from sandbox_agent.http.access.auth import page_headers
from sandbox_agent.http.asgi.exchange import Exchange
from sandbox_agent.http.asgi.messages import HTML, Response

_PACKED = Path(__file__).parents[2] / "guides"
_CHECKOUT = Path(__file__).parents[4] / "docs"
_TEXT = b"text/plain; charset=utf-8"
_LINK = re.compile(r"\]\(([^)#\s:]+)(#[^)\s]*)?\)")
_PROMISE = re.compile(r" ?<!-- P-[a-z]+-\d+ -->")
_STYLE = (
    "body{font:16px/1.6 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;color:#1c2330}"
    "pre{background:#f6f7f9;padding:.75rem;overflow:auto;border-radius:4px;font-size:.85rem}table{border-collapse:"
    "collapse}td,th{border:1px solid #dde1e7;padding:.2rem .6rem;text-align:left;vertical-align:top}"
    "code{font-family:ui-monospace,monospace;font-size:.9em}nav{margin-bottom:2rem}nav a{margin-right:1rem}"
    "@media(prefers-color-scheme:dark){body{background:#14181f;color:#dde1e7}a{color:#8ab4f8}pre{background:#1f2530}"
    "td,th{border-color:#39414f}}"
)


class GuidesApi:
    """`page` serves `/docs/` and `/docs/NAME.html`, `NAME.md` and `llms.txt`. Raises NotFound."""

    async def page(self, exchange: Exchange) -> Response:
        name = exchange.scope["path"].rpartition("/docs/")[2] or "index.html"
        stem, _, kind = name.rpartition(".")
        if name == "llms.txt":
            return Response(200, self._listing.encode(), _TEXT)
        if stem not in self._sources or kind not in {"html", "md"}:
            raise NotFound(f"no such page in the documentation: {name!r}; /docs/llms.txt lists them")
        text = _PROMISE.sub("", self._sources[stem].read_text())
        if kind == "md":
            return Response(200, text.encode(), _TEXT)
        return Response(200, self._html(stem, text).encode(), HTML, page_headers(_STYLE))

    @cached_property
    def _sources(self) -> dict[str, Path]:
        folder = _PACKED if _PACKED.is_dir() else _CHECKOUT
        home = folder / "index.md" if _PACKED.is_dir() else folder.parent / "README.md"
        pages = {path.stem: path for path in sorted(folder.glob("*.md"))}
        return {"index": home, **pages}

    @cached_property
    def _listing(self) -> str:
        lines = ["# Sandbox Agent", "", "> Run coding agents behind an HTTP API", ""]
        lines += [f"- [{_title(path)}]({name}.md)" for name, path in self._sources.items()]
        return "\n".join(lines) + "\n"

    def _html(self, name: str, text: str) -> str:
        from html import escape  # noqa: PLC0415 - only who reads the documentation needs these

        from markdown_it import MarkdownIt  # noqa: PLC0415

        body = MarkdownIt("commonmark", {"html": False}).enable("table").render(_LINK.sub(self._link, text))
        body = re.sub(r"<(h[2-4])>(.*?)</\1>", _anchored, body)
        links = '<a href="index.html">Documentation</a><a href="../docs">HTTP API</a><a href="../ui/">Web UI</a>'
        return (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(_title(self._sources[name]))}'
            f'</title><meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
            f"<body><nav>{links}</nav>{body}</body></html>"
        )

    def _link(self, found: re.Match[str]) -> str:
        """To the page of the same name. What is in the repository only leads to the start page."""
        name = posixpath.basename(found[1]).removesuffix(".md")
        page = f"{name}.html{found[2] or ''}" if found[1].endswith(".md") and name in self._sources else "index.html"
        return f"]({page})"


def _anchored(found: re.Match[str]) -> str:
    words = re.sub(r"<[^>]+>|&\w+;|[^\w\s-]", "", found[2]).strip().lower()
    name = re.sub(r"\s+", "-", words)
    return f'<{found[1]} id="{name}">{found[2]}</{found[1]}>'


def _title(path: Path) -> str:
    first = path.read_text().partition("\n")[0]
    return first.removeprefix("# ")
