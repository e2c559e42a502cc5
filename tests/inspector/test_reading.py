"""What it is like to read and to come back: code, lists, scripts that run the other way, places and drafts."""

from __future__ import annotations

import json

import pytest

from support.browser import Browser, Inspector
from support.rpc import connected
from support.server import Server

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(180)]

TEXT = """- [x] done
- [ ] open

```python
def hello() -> None: ...
```

| one | two |
| --- | --- |
| a-very-long-word-that-is-not-to-be-broken-at-any-place | x |

مرحبا بالعالم
"""

DRAWN = r"""The roots are $x = \frac{-b \pm \sqrt{b^2}}{2a}$, from $5 to $10, in $HOME.

$$
\sum_{i=1}^{n} i
$$

```mermaid
graph LR
  A[Prompt] --> B{Allowed?}
  B -->|yes| C[Turn]
```

```mermaid
gibberish that is no diagram
```
"""

AT_THE_EDGE = """(box => {
  const edge = box.getBoundingClientRect().top;
  const row = [...box.querySelectorAll('.tall-row')].find(row => row.getBoundingClientRect().bottom > edge);
  return [row.dataset.key, row.getBoundingClientRect().top - edge];
})(document.querySelector('.conversation'))"""
"""The entry at the upper edge, and where it begins. Pixels from the top of the list do not tell a place: they change
whenever an entry above, whose height was guessed, is drawn."""


async def test_code_is_coloured_named_and_copied_and_lists_have_their_marks(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say(TEXT)
    await browser.until("document.querySelector('.entry.agent .code .hljs-keyword')?.innerText === 'def'")
    assert await browser.eval("document.querySelector('.entry.agent .code figcaption span').innerText") == "python"
    marks = "[...document.querySelectorAll('.entry.agent .task [role=img]')].map(node => node.ariaLabel)"
    assert await browser.eval(marks) == ["done", "to do"]
    await browser.eval(
        "void (navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve() })"
    )
    await browser.click(".entry.agent [data-copy]")
    await browser.until("window.copied === 'def hello() -> None: ...\\n'")
    await browser.until_text("Copied", within=".entry.agent .code")
    heights = "[...document.querySelectorAll('.entry.agent td')].map(cell => cell.offsetHeight)"
    assert len(set(await browser.eval(heights))) == 1
    last = "[...document.querySelectorAll('.entry.agent p')].at(-1)"
    assert await browser.eval(f"getComputedStyle({last}).direction") == "rtl"
    errors = await browser.run("errors")
    assert "Content Security Policy" not in errors, errors


async def test_formulas_and_diagrams_are_drawn_under_the_same_policy_and_prices_are_not(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say(DRAWN)
    await browser.until("document.querySelectorAll('.entry.agent .formula.drawn math').length === 2")
    await browser.until("document.querySelector('.entry.agent .formula.block math[display=block] munderover')")
    assert await browser.eval("document.querySelectorAll('.entry.agent .formula.drawn mfrac msqrt').length") == 1
    await browser.until_text("from $5 to $10, in $HOME.", within=".entry.agent")
    await browser.until("document.querySelector('.entry.agent .diagram.drawn img')?.naturalWidth > 100")
    assert await browser.eval("document.querySelectorAll('.entry.agent .diagram.drawn').length") == 1
    await browser.until_text("gibberish that is no diagram", within=".entry.agent")
    source = "document.querySelector('.entry.agent .diagram.drawn pre').checkVisibility()"
    assert not await browser.eval(source)
    await browser.click(".entry.agent .diagram.drawn [data-source]")
    await browser.until(source)
    await browser.click(".entry.agent .diagram.drawn [data-source]")
    await browser.screenshot("drawn-light")
    await browser.eval("void (document.documentElement.dataset.theme = 'dark')")
    await browser.screenshot("drawn-dark")
    errors = await browser.run("errors")
    assert "Content Security Policy" not in errors, errors


@pytest.mark.promise("P-inspector-2")
async def test_a_draft_and_a_place_are_kept_for_each_session(server: Server, browser: Browser) -> None:
    inspector = Inspector(browser, server.url)
    async with connected(server.url) as rpc:
        first, second = await rpc.new_session(), await rpc.new_session()
        for turn in range(40):
            await rpc.prompt(first, f"# Part {turn}\n\n{'Some words. ' * 30}")
        links = [f"#/sessions/{session}?agent=mock" for session in (first, second)]
        await browser.open(f"{server.url}/ui/{links[0]}")
        await browser.until_text("Part 39", within=".conversation")
        await inspector.ready()
        await browser.eval("document.querySelector('.conversation').scrollTo(0, 1000)")
        await browser.until("document.querySelector('.latest')")
        key, offset = await browser.eval(AT_THE_EDGE)
        await browser.fill("#prompt", "half a thought")
        await browser.eval(f"void (location.hash = {json.dumps(links[1])})")
        await browser.until("document.querySelector('#prompt')?.value === ''")
        await browser.eval(f"void (location.hash = {json.dumps(links[0])})")
        await browser.until("document.querySelector('#prompt')?.value === 'half a thought'")
        await browser.until(
            f"(([key, offset]) => key === {json.dumps(key)} && Math.abs(offset - {offset}) < 5)({AT_THE_EDGE})"
        )
        await browser.click(".latest")
        await browser.until("!document.querySelector('.latest')")
        await browser.eval("document.querySelector('.conversation').scrollTo(0, 0)")
        await browser.until("document.querySelector('.latest')")
        await inspector.say("seen at once")
        await inspector.until_answer("seen at once")
        await browser.until("!document.querySelector('.latest')")


async def test_a_fork_begins_with_what_its_parent_knows(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say("said before the fork")
    await inspector.until_status("Ready")
    origin = (await browser.eval("location.hash")).split("/")[2].split("?")[0]
    await inspector.choose("Fork")
    await browser.until_text("Forked from", within=".conversation")
    assert await inspector.answers() == ["said before the fork"]
    await inspector.ready()
    await inspector.say("said after it")
    await inspector.until_answer("said after it")
    await browser.screenshot("fork")
    await browser.click(".note.fork a")
    await browser.until(f"location.hash.includes({json.dumps(origin)})")


async def test_many_sessions_cost_one_tab_stop_and_menus_have_arrow_keys(server: Server, browser: Browser) -> None:
    inspector = Inspector(browser, server.url)
    async with connected(server.url) as rpc:
        for _ in range(30):
            session = await rpc.new_session()
        await browser.open(f"{server.url}/ui/#/sessions/{session}?agent=mock")
        await inspector.ready()
        await browser.until("document.querySelectorAll('.session-list a').length >= 30")
        nodes = "[...document.querySelectorAll('a, button, input, select, textarea, summary')]"
        stops = f"{nodes}.filter(node => node.tabIndex >= 0 && node.checkVisibility())"
        assert await browser.eval(f"{stops}.findIndex(node => node.id === 'prompt')") < 20
        await browser.eval("document.querySelector('.session-list a[tabindex=\"0\"]').focus()")
        await browser.press("ArrowDown")
        assert (
            await browser.eval("[...document.querySelectorAll('.session-list a')].indexOf(document.activeElement)") == 1
        )
        await browser.eval("document.querySelector('.menu summary').focus()")
        await browser.press("ArrowDown")
        await browser.until("document.activeElement.innerText === 'Rename'")
        await browser.press("ArrowDown")
        await browser.until("document.activeElement.innerText === 'Pin to the top'")
        await browser.press("Escape")
        await browser.until("!document.querySelector('.menu').open")


async def test_a_failure_says_what_to_do_in_words_for_people(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say("auth")
    await browser.until_text("The agent needs you to log in", within=".note.error")
    await browser.until_text("Send again", within=".note.error button")


async def test_long_text_is_seen_whole_where_it_is_written(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await browser.fill("#prompt", "words that go on " * 40)
    assert await browser.eval("(box => box.scrollHeight - box.clientHeight)(document.querySelector('#prompt'))") < 4
