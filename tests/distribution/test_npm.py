"""The npm package: what is in it, and that a new project can use it in Node.js and in a browser."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from sandbox_agent.version import __version__
from support.command import COMMAND, serving
from support.dist import ROOT

SDK = ROOT / "sdks" / "typescript"
needs_npm = pytest.mark.skipif(
    shutil.which("npm") is None or not (SDK / "node_modules" / ".installed").exists(), reason="see `make packages`"
)
needs_registry = pytest.mark.skipif("SANDBOX_AGENT_DIST" not in os.environ, reason="`make dist` runs it: it downloads")
pytestmark = pytest.mark.timeout(300)

STRICT = {"strict": True, "noEmit": True, "exactOptionalPropertyTypes": True, "verbatimModuleSyntax": True}
FOR_NODE = {"target": "ES2022", "module": "NodeNext", "types": ["node"], "lib": ["ES2022"]}
FOR_BROWSERS = {"target": "ES2022", "module": "ESNext", "moduleResolution": "Bundler", "lib": ["ES2022", "DOM"]}
IN_A_BROWSER = """
import { SandboxAgent } from "sandbox-agent-client";

const sandbox = await SandboxAgent.connect({ url: location.origin });
document.title = String((await sandbox.agents.list()).length);
"""


def _run(*command: str | Path, cwd: Path) -> str:
    env = {**os.environ, "SANDBOX_AGENT_BIN": str(COMMAND), "SANDBOX_AGENT_DATA_DIR": str(cwd / "data")}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def tarball(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `make dist` has packed it, or packed here from a copy without what was built before."""
    if given := os.environ.get("SANDBOX_AGENT_DIST"):
        (found,) = (ROOT / given).glob("*.tgz")
        return found
    place = tmp_path_factory.mktemp("npm")
    ignored = shutil.ignore_patterns("dist", "node_modules")
    shutil.copytree(SDK, place / "sdk", ignore=ignored)
    (place / "sdk" / "node_modules").symlink_to(SDK / "node_modules")
    _run("npm", "pack", "--loglevel=error", "--pack-destination", place, cwd=place / "sdk")
    (found,) = place.glob("*.tgz")
    return found


@pytest.fixture(scope="module")
def project(tarball: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new project that has installed the package, TypeScript and vite."""
    place = tmp_path_factory.mktemp("project")
    (place / "package.json").write_text('{"name": "new", "private": true, "type": "module"}')
    development = json.loads((SDK / "package.json").read_text())["devDependencies"]
    tools = [f"{name}@{development[name]}" for name in ("typescript", "vite", "@types/node")]
    _run("npm", "install", "--loglevel=error", "--no-audit", "--no-fund", tarball, *tools, cwd=place)
    return place


def test_versions_and_licences_agree() -> None:
    assert json.loads((SDK / "package.json").read_text())["version"] == __version__
    assert (SDK / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


@needs_npm
def test_npm_pack_ships_the_build_the_types_the_readme_and_the_licence(tarball: Path) -> None:
    with tarfile.open(tarball) as archive:
        names = {name.removeprefix("package/") for name in archive.getnames()}
    assert {"README.md", "LICENSE", "package.json", "dist/index.js", "dist/index.d.ts", "dist/browser.js"} <= names
    assert not {name for name in names if name.startswith(("src/", "tests/"))}


@needs_npm
@needs_registry
@pytest.mark.parametrize("page", [SDK / "README.md", ROOT / "docs" / "typescript-sdk.md"], ids=lambda page: page.stem)
def test_the_sample_is_a_strict_program_that_runs_in_node(project: Path, page: Path, tmp_path: Path) -> None:
    (sample,) = re.findall(r"```ts\n(.*?)```", page.read_text(), re.DOTALL)
    with serving(tmp_path) as served:
        url = served.env["SANDBOX_AGENT_ENDPOINT"]
        (project / "main.ts").write_text(sample.replace("http://127.0.0.1:2468", url))
        options = {**STRICT, **FOR_NODE}
        (project / "tsconfig.json").write_text(json.dumps({"compilerOptions": options, "include": ["main.ts"]}))
        _run("npx", "tsc", "--outDir", "out", "--noEmit", "false", "-p", ".", cwd=project)
        assert "end_turn" in _run("node", "out/main.js", cwd=project)


@needs_npm
@needs_registry
def test_types_need_no_skip_lib_check_and_no_node_in_a_browser_project(project: Path) -> None:
    (project / "page.ts").write_text(IN_A_BROWSER)
    options = {**STRICT, **FOR_BROWSERS, "types": []}
    (project / "tsconfig.page.json").write_text(json.dumps({"compilerOptions": options, "include": ["page.ts"]}))
    _run("npx", "tsc", "-p", "tsconfig.page.json", cwd=project)


@needs_npm
@needs_registry
def test_vite_bundles_it_for_browsers_without_anything_of_node(project: Path) -> None:
    (project / "page.ts").write_text(IN_A_BROWSER)
    (project / "index.html").write_text('<script type="module" src="/page.ts"></script>')
    _run("npx", "vite", "build", "--target", "es2022", "--logLevel", "warn", cwd=project)
    (script,) = (project / "dist" / "assets").glob("*.js")
    assert "node:" not in script.read_text()
