"""The adapters for vendors' sandboxes make calls that the vendors' real SDKs know: their signatures are looked at."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sandbox_agent.client import providers
from support import vendors
from support.dist import ROOT
from support.samples import samples
from support.vendors import Vendor

SDK = ROOT / "sdks" / "typescript"
needs_registry = pytest.mark.skipif("SANDBOX_AGENT_DIST" not in os.environ, reason="`make dist` runs it: it downloads")
pytestmark = [needs_registry, pytest.mark.timeout(400)]
PYTHON = ("e2b==2.63.0", "daytona==0.226.1", "modal==1.6.4", "vercel==0.12.1")
NPM = {"e2b": "2.51.0", "modal": "0.11.1", "@vercel/sandbox": "3.5.0", "@cloudflare/sandbox": "0.12.10"}
"""Daytona's npm package is held against its documentation only: its dependencies cannot be had everywhere."""
BIND = """
import inspect, json, sys
from importlib import import_module
for name, positional, named in json.load(open(sys.argv[1])):
    module, _, path = name.partition(":")
    found = import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    if hasattr(found, "model_fields"):
        known = set(found.model_fields) | {field.alias for field in found.model_fields.values()}
        assert not set(named) - known, f"{name} does not know {set(named) - known}"
    else:
        inspect.signature(found).bind(*range(positional), **dict.fromkeys(named))
    print(name)
"""
TYPED = """
import { cloudflare, e2b, modal, vercel, type CloudflareSandbox } from "sandbox-agent-client/providers";
import type { getSandbox } from "@cloudflare/sandbox";

type Known = Pick<ReturnType<typeof getSandbox>, keyof CloudflareSandbox>;
export const on = (sandbox: Known) => cloudflare(sandbox as CloudflareSandbox satisfies Known | CloudflareSandbox);
export const providers = [
  e2b("template", { sdk: await import("e2b") }),
  modal("image", { sdk: await import("modal") }),
  vercel({ sdk: await import("@vercel/sandbox") }),
];
"""


async def test_the_python_sdks_know_every_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vendor = Vendor(tmp_path / "vendor")
    for fake in (vendors.e2b, vendors.daytona, vendors.modal, vendors.vercel):
        for name, module in fake(vendor).items():
            monkeypatch.setitem(sys.modules, name, module)
    try:
        for provider in (
            providers.e2b("t"),
            providers.daytona("s"),
            providers.daytona(image="i"),
            providers.modal("i"),
            providers.vercel(image="i"),
        ):
            await (await provider.create("token", {"NAME": "value"})).destroy()
    finally:
        vendor.close()
    calls = tmp_path / "calls.json"
    calls.write_text(json.dumps([_shape(*call) for call in vendor.calls]))
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True, timeout=60)
    inside = tmp_path / "venv/bin/python"
    subprocess.run([inside, "-m", "pip", "install", "--quiet", *PYTHON], check=True, capture_output=True, timeout=250)
    done = subprocess.run([inside, "-c", BIND, calls], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) >= {
        "e2b:AsyncSandbox.create",
        "modal:Sandbox.create",
        "vercel.sandbox:create_sandbox",
    }


def _shape(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[str, int, list[str]]:
    has_self = bool(args) and not isinstance(args[0], (str, int, dict, SimpleNamespace))
    assert has_self or ":" in name
    return name, len(args), sorted(named)


def test_the_typescript_sdks_fit_the_adapters(tmp_path: Path) -> None:
    (tarball,) = (ROOT / os.environ["SANDBOX_AGENT_DIST"]).glob("*.tgz")
    (tmp_path / "package.json").write_text('{"name": "new", "private": true, "type": "module"}')
    development = json.loads((SDK / "package.json").read_text())["devDependencies"]
    tools = [f"{name}@{development[name]}" for name in ("typescript", "@types/node")]
    packages = [f"{name}@{version}" for name, version in NPM.items()]
    install = ["npm", "install", "--loglevel=error", "--no-audit", "--no-fund", "--ignore-scripts", str(tarball)]
    subprocess.run([*install, *tools, *packages], cwd=tmp_path, check=True, capture_output=True, timeout=250)
    (tmp_path / "main.ts").write_text(TYPED)
    shown = [one.text for one in samples("ts") if one.page == "providers"]
    assert len(shown) == 2
    for number, text in enumerate(shown):
        (tmp_path / f"shown{number}.ts").write_text(text)
    options = {"strict": True, "noEmit": True, "skipLibCheck": True, "target": "ES2022", "module": "NodeNext"}
    (tmp_path / "tsconfig.json").write_text(json.dumps({"compilerOptions": options, "include": ["*.ts"]}))
    done = subprocess.run(["npx", "tsc", "-p", "."], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
