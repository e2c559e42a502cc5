from __future__ import annotations

import pytest

from sandbox_agent.agents.programs import program_environment
from sandbox_agent.process import child_environment

OURS = {
    "HOME": "/h",
    "PATH": "/bin",
    "LANG": "C",
    "LC_ALL": "C.UTF-8",
    "https_proxy": "p",
    "ANTHROPIC_API_KEY": "k",
    "AWS_SECRET_ACCESS_KEY": "s",
    "LD_PRELOAD": "x",
    "SANDBOX_AGENT_TOKEN": "t",
    "SANDBOX_AGENT_DATABASE_URL": "d",
}


@pytest.mark.promise("P-security-9")
def test_only_what_is_allowed_is_seen() -> None:
    assert child_environment(OURS) == {name: OURS[name] for name in ("HOME", "PATH", "LANG", "LC_ALL", "https_proxy")}


def test_names_can_be_passed_through_and_values_set() -> None:
    env = child_environment(OURS, extra={"PATH": "/opt", "NEW": "1"}, passthrough=["ANTHROPIC_API_KEY", "ABSENT"])
    assert env["ANTHROPIC_API_KEY"] == "k"
    assert (env["PATH"], env["NEW"]) == ("/opt", "1")
    assert "ABSENT" not in env
    assert "AWS_SECRET_ACCESS_KEY" not in env


@pytest.mark.parametrize("name", ["SANDBOX_AGENT_TOKEN", "SANDBOX_AGENT_DATABASE_URL"])
@pytest.mark.promise("P-security-9")
def test_our_own_secrets_never_pass_not_even_when_asked_for(name: str) -> None:
    assert name not in child_environment(OURS, passthrough=[name])


def test_our_own_environment_is_left_alone() -> None:
    ours = dict(OURS)
    child_environment(ours, extra={"HOME": "/other"})["PATH"] = "/changed"
    assert ours == OURS


def test_an_install_sees_what_every_child_sees_and_the_settings_of_package_managers() -> None:
    settings = {"PIP_INDEX_URL": "i", "npm_config_cache": "c", "UV_CACHE_DIR": "u"}
    assert program_environment({**OURS, **settings}) == {**child_environment(OURS), **settings}
