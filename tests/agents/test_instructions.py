from __future__ import annotations

import os
from pathlib import Path

from sandbox_agent.agents.instructions import replace_generated, write_instructions
from sandbox_agent.agents.manifest import load_manifest

PAGE = Path(__file__).parents[2] / "docs" / "agents.md"


def test_the_docs_page_is_what_the_manifest_says() -> None:
    """To mend it: REGENERATE=1 python -m pytest tests/agents/test_instructions.py"""
    page = PAGE.read_text("utf-8")
    if os.environ.get("REGENERATE") == "1":
        page = replace_generated(page, load_manifest())
        PAGE.write_text(page, "utf-8")
    assert page == replace_generated(page, load_manifest())
    assert all(f"### {agent}\n" in page for agent in load_manifest().agents)


def test_instructions_name_the_command_the_package_and_the_runtime() -> None:
    text = write_instructions(load_manifest().agents["pi"])
    assert "sandbox-agent install-agent pi" in text
    assert "npm install -g pi-acp@0.0.34 @earendil-works/pi-coding-agent@0.87.1" in text
    assert "Node.js 22.19 or newer" in text


def test_instructions_for_agents_that_we_do_not_install_say_why() -> None:
    agents = load_manifest().agents
    assert "does not speak ACP" in write_instructions(agents["amp"])
    assert "cursor-agent login" in write_instructions(agents["cursor"])
    assert "nothing to install" in write_instructions(agents["mock"])
