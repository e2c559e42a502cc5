"""What agents and file systems may contain, and what the page must not do about it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.browser import Inspector

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(180)]

ATTACKS = [
    "<script>window.pwned = 1</script>",
    "<img src=x onerror='window.pwned = 2'>",
    "<svg onload='window.pwned = 3'></svg>",
    "[click](javascript:window.pwned=4)",
    "[data](data:text/html,<script>window.pwned=5</script>)",
    "![remote](http://example.invalid/track.png)",
    "![local](javascript:window.pwned=6)",
    '<iframe srcdoc="<script>parent.pwned=7</script>"></iframe>',
    "<style>body{display:none}</style>",
    "[good](https://example.invalid/)",
]


@pytest.mark.promise("P-inspector-6")
async def test_hostile_markdown_does_nothing(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    for attack in ATTACKS:
        await inspector.say(f"{attack}\n\nand more")
        await inspector.until_status("Ready")
    await browser.until(f"document.querySelectorAll('.entry.agent').length === {len(ATTACKS)}")
    assert await browser.eval("typeof window.pwned") == "undefined"
    assert await browser.eval("document.querySelectorAll('.message :is(script, img, svg, iframe, style)').length") == 0
    links = await browser.eval("[...document.querySelectorAll('.message a')].map(a => [a.href, a.target, a.rel])")
    assert {link[0] for link in links} == {"https://example.invalid/"}
    assert all(link[1:] == ["_blank", "noopener noreferrer nofollow"] for link in links)
    await browser.screenshot("hostile-markdown")
    await browser.run("reload")
    await inspector.ready()
    assert await browser.eval("typeof window.pwned") == "undefined"


async def test_hostile_file_names_do_nothing(inspector: Inspector, tmp_path: Path) -> None:
    browser = inspector.browser
    folder = tmp_path / "work"
    folder.mkdir()
    name = "<img src=x onerror=window.pwned=1>.txt"
    (folder / name).write_text("<script>window.pwned = 2</script>")
    (folder / "deep").mkdir()
    await inspector.start_session(str(folder))
    await inspector.show("files")
    await browser.until_text(name, within=".files")
    await browser.click(".entries li:nth-child(2) .entry-row")
    await browser.until_text("<script>window.pwned = 2</script>", within=".file pre")
    assert await browser.eval("typeof window.pwned") == "undefined"
    assert await browser.eval("document.querySelectorAll('.files :is(img, script)').length") == 0
    await browser.screenshot("files")


async def test_no_request_leaves_the_origin(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say("image; plan; usage; ![x](http://example.invalid/a.png)")
    await inspector.until_status("Ready")
    for tab in ("protocol", "files", "both"):
        await inspector.show(tab)
    await browser.click(".topbar nav a:nth-child(2)")
    await browser.until_text("Mock", within=".agent-grid")
    own = urlsplit(inspector.url).netloc
    asked = await browser.requests()
    assert len(asked) > 5
    assert {urlsplit(url).netloc for url in asked if not url.startswith("data:")} == {own}
    assert await browser.eval("document.cookie") == ""
    errors = await browser.run("errors")
    assert "Content Security Policy" not in errors, errors
