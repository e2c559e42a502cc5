"""What is said when a download does not work out."""

from __future__ import annotations

import threading

import pytest

from sandbox_agent.agents.web import fetch
from sandbox_agent.errors import InstallError
from support.loopback_site import LoopbackSite, Page


async def test_a_site_that_falls_silent_is_given_up_with_the_reason() -> None:
    with LoopbackSite() as site:
        held = threading.Event()
        site.pages["/slow"] = Page(b"x" * 1000, stalled=held)
        try:
            with pytest.raises(InstallError, match=r"/slow: no answer, or nothing more of it, within 0\.2 s"):
                async with fetch(site.url("/slow"), {}, idle=0.2) as response:
                    await response.aread()
        finally:
            held.set()


async def test_a_site_that_is_not_there_is_named_with_the_reason() -> None:
    with LoopbackSite() as site:
        url = site.url("/gone")
    with pytest.raises(InstallError, match=r"/gone: \S+"):
        async with fetch(url, {}, idle=5.0):
            pass
