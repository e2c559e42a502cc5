"""What mkdocs has to be told of this repository.

Pages outside of docs/ join the site, links between files become links between pages, a page lists the decisions, and
llms.txt lists the pages for language models.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security-policy.md",
}
_SOURCES = {page: source for source, page in OUTSIDE.items()}
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]*)(#[^)\s]*)?\)")
_PROMISE = re.compile(r" ?<!-- P-[a-z]+-\d+ -->")
"""The id of a promise: for those who read the source."""
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)


def on_files(files: Files, config: Any) -> Files:
    for source, page in OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    decisions = sorted((ROOT / "docs" / "adr").glob("*.md"))
    listed = "\n".join(f"- [{_title(path.read_text())}]({path.name})" for path in decisions)
    files.append(File.generated(config, "adr/index.md", content=f"# Decisions\n\n{listed}\n"))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    here = page.file.src_uri
    return _LINK.sub(lambda found: _link(here, *found.groups(default="")), _PROMISE.sub("", markdown))


def on_post_build(config: Any) -> None:
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", ""]
    for section in config.nav:
        for heading, entries in section.items():
            lines += [f"## {heading}", ""]
            for entry in entries:
                for title, page in entry.items():
                    lines.append(f"- [{title}]({page.removesuffix('.md')}.html): {_summary(page)}")
            lines.append("")
    (Path(config.site_dir) / "llms.txt").write_text("\n".join(lines))


def _link(here: str, text: str, target: str, anchor: str) -> str:
    """The same link between pages. Where there is no page for it, only the text stays."""
    if not target or ":" in target:
        return f"[{text}]({target}{anchor})"
    source = _SOURCES.get(here) or f"docs/{here}"
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    if path == "docs/adr":
        path = "docs/adr/index.md"
    page = OUTSIDE.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
    if page is None:
        return text
    return f"[{text}]({posixpath.relpath(page, posixpath.dirname(here) or '.')}{anchor})"


def _title(markdown: str) -> str:
    found = _TITLE.search(markdown)
    return found[1] if found else "?"


def _summary(page: str) -> str:
    """The first sentence of a page."""
    source = ROOT / (_SOURCES.get(page) or f"docs/{page}")
    if not source.exists():
        return "Why things are as they are."
    body = re.sub(r"<!--.*?-->|^#[^\n]*$|```.*?```", "", source.read_text(), flags=re.DOTALL | re.MULTILINE)
    paragraph = " ".join(next((part for part in body.split("\n\n") if part.strip()), "").split())
    return re.split(r"(?<=[.:])\s", _LINK.sub(r"\1", paragraph))[0].rstrip(":.") + "."
