"""Installing an agent from its card: the steps as they happen, what went wrong, and another try."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from sandbox_agent.agents.surroundings import current_platform
from support.browser import Inspector
from support.loopback_site import TINY_AGENT, LoopbackSite, Page, binary_entry, tar_of
from support.server import Server, running_server

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(180)]

AGENT = "gemini"
CARD = f"#agent-{AGENT}"
ARCHIVE = "/tiny.tar.gz"


@pytest.fixture
def site() -> Iterator[LoopbackSite]:
    with LoopbackSite() as site:
        site.publish_registry(binary_entry(AGENT, site.url(ARCHIVE), platform=current_platform()))
        yield site


@pytest.fixture
async def server(site: LoopbackSite, tmp_path: Path) -> AsyncIterator[Server]:
    env = {"SANDBOX_AGENT_ACP_REGISTRY_URL": site.url("/registry.json"), "PATH": "/usr/bin:/bin"}
    async with running_server(tmp_path / "home", env=env) as running:
        yield running


async def test_an_install_shows_its_steps_and_how_far_it_is(site: LoopbackSite, inspector: Inspector) -> None:
    browser, gate = inspector.browser, threading.Event()
    site.pages[ARCHIVE] = Page(tar_of({"bin/tiny": TINY_AGENT}), stalled=gate)
    await inspector.show_agents()
    await browser.until_text("Install", within=CARD)
    titles = "[...document.querySelectorAll('.agents-page h2')].map(node => node.firstChild.data.trim())"
    assert await browser.eval(titles) == ["Installed", "Available", "To install by hand"]
    first = "document.querySelector('.agents-page section #agent-mock').closest('section').ariaLabel"
    assert await browser.eval(first) == "Installed"
    await browser.run("scrollintoview", f"{CARD} .install button")
    await browser.click(f"{CARD} .install button")
    await browser.until_text("Downloading tiny.tar.gz", within=f"{CARD} .steps .current")
    assert await browser.eval(f"document.querySelectorAll('{CARD} .steps .done').length") == 1
    await browser.until(f"document.querySelector('{CARD} progress').value > 0.3")
    await browser.until("/^\\d+ % · \\d+ s$/.test(document.querySelector('.progress .muted').innerText)")
    await browser.screenshot("agents-installing")
    await browser.click(".topbar nav a:nth-child(1)")
    await inspector.show_agents()
    await browser.until_text("Downloading tiny.tar.gz", within=f"{CARD} .steps .current")
    assert await browser.eval(f"document.querySelector('{CARD} .install button')") is None
    gate.set()
    await browser.until_text("Installed 1.0.0", within=CARD)
    await browser.until_text("Stopped", within=CARD)
    assert "1.0.0" in await browser.eval(f"document.querySelector('{CARD} dl').innerText")
    site.publish_registry(binary_entry(AGENT, site.url(ARCHIVE), platform=current_platform(), version="1.1.0"))
    await browser.run("reload")
    await browser.until_text("Update", within=f"{CARD} .install button")
    await browser.run("scrollintoview", f"{CARD} .install button")
    await browser.click(f"{CARD} .install button")
    await browser.until_text("Installed 1.1.0", within=CARD)


async def test_an_install_that_failed_says_why_until_it_is_tried_again(
    site: LoopbackSite, inspector: Inspector
) -> None:
    browser = inspector.browser
    site.pages[ARCHIVE] = Page(b"gone", status=404)
    await inspector.show_agents()
    await browser.run("scrollintoview", f"{CARD} .install button")
    await browser.click(f"{CARD} .install button")
    await browser.until_text("404", within=f"{CARD} .error-line")
    await browser.screenshot("agents-install-failed")
    assert await browser.eval(f"document.querySelectorAll('{CARD} .steps .failed').length") == 1
    await browser.click(".topbar nav a:nth-child(1)")
    await inspector.show_agents()
    await browser.until_text("404", within=f"{CARD} .error-line")
    site.pages[ARCHIVE] = Page(tar_of({"bin/tiny": TINY_AGENT}))
    await browser.until_text("Try again", within=f"{CARD} .install")
    await browser.run("scrollintoview", f"{CARD} .install button")
    await browser.click(f"{CARD} .install button")
    await browser.until_text("Installed 1.0.0", within=CARD)
    assert await browser.eval(f"document.querySelector('{CARD} .error-line')") is None


async def test_models_modes_and_the_log_of_an_agent_are_read(inspector: Inspector) -> None:
    browser = inspector.browser
    await inspector.start_session()
    await inspector.say("stderr 3")
    await browser.until_text("done", within=".entry.agent")
    await inspector.show_agents()
    await browser.click("#agent-mock details:nth-of-type(1) summary")
    await browser.until_text("Mock Small", within="#agent-mock .names")
    await browser.click("#agent-mock details:nth-of-type(2) summary")
    await browser.until("document.querySelector('#agent-mock pre')?.innerText.trim().split('\\n').length >= 3")
