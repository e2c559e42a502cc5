"""Agents that want a login first: what they need is said where they refuse, with a button that tries it."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support import refusing_agent
from support.browser import Inspector
from support.server import Server, running_server

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(180)]

REFUSAL = json.dumps({"code": -32000, "message": "Authentication required"})
CONFIG = f"""
[agents.locked]
name = "Locked"
isolation = "process"
command = {[sys.executable, "-m", "sandbox_agent.mock_agent", "--needs-auth"]!r}
env_passthrough = ["LOCKED_API_KEY", "SANDBOX_AGENT_MOCK_STATE"]
[agents.refuses]
name = "Refusing"
command = {[sys.executable, refusing_agent.__file__, REFUSAL]!r}
"""


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with running_server(tmp_path / "home", config=CONFIG) as running:
        yield running


async def test_an_agent_is_logged_in_from_its_card_and_one_without_a_login_says_where_its_key_goes(
    inspector: Inspector,
) -> None:
    browser = inspector.browser
    await inspector.show_agents()
    await browser.until_text("none found", within="#agent-locked")
    await browser.run("scrollintoview", "#agent-locked details summary")
    await browser.click("#agent-locked details summary")
    await browser.until_text("Always works", within="#agent-locked .login")
    await browser.click("#agent-locked .login button")
    await browser.until_text("Logged in with Log in", within="#agent-locked [role=status]")
    await browser.screenshot("agents-login")
    await browser.run("scrollintoview", "#agent-refuses details summary")
    await browser.click("#agent-refuses details summary")
    await browser.until_text("The agent offers no login. It takes its API key", within="#agent-refuses")
    await browser.click(".topbar nav a:nth-child(1)")
    await inspector.start_session(agent="locked")


async def test_a_session_or_turn_that_is_refused_for_want_of_a_login_offers_it(inspector: Inspector) -> None:
    browser = inspector.browser
    await browser.click("#new-session")
    await browser.until("document.querySelector('select[name=agent]')?.options.length")
    await browser.run("select", "select[name=agent]", "locked")
    await browser.click("#start-session")
    await browser.until_text("The agent needs you to log in", within="dialog .error-line")
    await browser.until_text("LOCKED_API_KEY", within="dialog .logins")
    await browser.screenshot("new-session-login")
    await browser.click("dialog .login button")
    await browser.until_text("Press Start again", within="dialog [role=status]")
    await browser.click("#start-session")
    await inspector.ready()
    await inspector.say("auth")
    await browser.until_text("The agent needs you to log in", within=".note.error")
    await browser.click(".note.error .login button")
    await browser.until_text("Send the message again", within=".note.error [role=status]")
    await browser.until_text("Send again", within=".note.error .choices")
