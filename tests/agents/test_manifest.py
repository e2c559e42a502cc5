from __future__ import annotations

import pytest

from sandbox_agent.agents.manifest import load_manifest, parse_manifest
from sandbox_agent.errors import ConfigError

GOOD = """
[agents.tiny]
name = "Tiny"
support = "supported"
license = "MIT"
docs = "https://example.org"
package = { kind = "npm", name = "tiny-acp", version = "1.0.0" }
runtime = { kind = "node", min_version = "18" }
command = ["{bin}/tiny"]
"""


def test_every_agent_that_is_promised_is_in_the_manifest() -> None:
    agents = load_manifest().agents
    assert {"claude", "codex", "opencode", "gemini", "pi", "goose", "copilot", "qwen", "kimi-code", "vibe"} <= set(
        agents
    )
    assert {"fast-agent", "amp", "cursor", "auggie", "cline", "droid", "qoder", "grok", "mock"} <= set(agents)
    assert (agents["amp"].support, agents["cursor"].support) == ("manual", "manual")
    assert all(entry.reason for entry in agents.values() if entry.support != "supported")


def test_agents_start_with_what_they_need_and_do_not_update_themselves() -> None:
    agents = load_manifest().agents
    assert agents["fast-agent"].command[-1] == "-x", "without it, it has no shell"
    assert agents["grok"].env["GROK_DISABLE_AUTOUPDATER"] == "1"
    assert agents["auggie"].env["AUGMENT_DISABLE_AUTO_UPDATE"] == "1"
    assert agents["droid"].env["DROID_DISABLE_AUTO_UPDATE"] == "1"
    assert "acp-amp" in agents["amp"].command[0], "the adapter, since amp itself does not speak ACP"


def test_every_supported_agent_has_a_pin_a_verification_and_keys_it_may_see() -> None:
    for entry in load_manifest().agents.values():
        if entry.support == "supported" and not entry.builtin:
            assert entry.package, entry.id
            assert entry.verify, entry.id
            assert entry.env_passthrough, entry.id


def test_no_agent_may_see_what_could_inject_code_or_unlock_the_server() -> None:
    passed = {name for entry in load_manifest().agents.values() for name in entry.env_passthrough}
    risky = {name for name in passed if name.startswith(("LD_", "NODE_", "PYTHON", "SANDBOX_AGENT", "DYLD_"))}
    # Where the built-in agent keeps its sessions, and which version it speaks: a path and a number, no secrets.
    assert risky == {"SANDBOX_AGENT_MOCK_STATE", "SANDBOX_AGENT_MOCK_PROTOCOL"}


def test_a_slug_of_the_registry_leads_to_the_agent() -> None:
    found = load_manifest().by_slug("claude-code-acp")
    assert found is not None
    assert found.id == "claude"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (('name = "Tiny"', 'name = "Tiny"\ncolour = "red"'), "colour"),
        (('"1.0.0"', '"latest"'), "latest"),
        (('"tiny-acp"', '"--global"'), "--global"),
        (("{bin}/tiny", "{evil}/tiny"), "{evil}"),
        (('"supported"', '"manual"'), "reason"),
        (("[agents.tiny]", '[agents."../up"]'), "../up"),
        (('license = "MIT"', 'license = "MIT"\nplatforms = ["amiga-68k"]'), "amiga"),
        (("[agents.tiny]", "[agent]\n[agents.tiny]"), "agent"),
    ],
)
def test_a_manifest_that_is_wrong_is_refused_with_the_place(change: tuple[str, str], complaint: str) -> None:
    parse_manifest(GOOD)
    with pytest.raises(ConfigError, match=complaint):
        parse_manifest(GOOD.replace(*change))
