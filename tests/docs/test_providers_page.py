"""The programs of docs/providers.md run, with the vendors' SDKs replaced by those of tests/support/vendors.py."""

from __future__ import annotations

import re
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from support import vendors
from support.samples import Sample, samples
from support.vendors import Vendor

PROGRAMS = [one for one in samples("python") if one.page == "providers"]
FAKES = {"e2b": vendors.e2b, "daytona": vendors.daytona, "modal": vendors.modal, "vercel": vendors.vercel}


def _provider(sample: Sample) -> str:
    (names,) = re.findall(r"providers import (.+)", sample.text)
    return str(names).rpartition(" ")[2]


def test_each_provider_of_the_table_has_its_program() -> None:
    assert {_provider(one) for one in PROGRAMS} == {"docker", "fly", "local", *FAKES}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("sample", [one for one in PROGRAMS if _provider(one) != "fly"], ids=_provider)
def test_it_runs(
    sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = _provider(sample)
    vendor = Vendor(tmp_path / "vendor", installs="pip")
    for variable, value in (("HOME", ""), ("SANDBOX_AGENT_DATA_DIR", "data"), ("SANDBOX_AGENT_MOCK_STATE", "mock")):
        monkeypatch.setenv(variable, str(tmp_path / value))
    with ExitStack() as stack:
        stack.callback(vendor.close)
        for module, content in FAKES[name](vendor).items() if name in FAKES else ():
            monkeypatch.setitem(sys.modules, module, content)
        if name == "docker":
            vendors.fake_docker(tmp_path, monkeypatch)
        exec(compile(sample.text, sample.name, "exec"), {"__name__": "__main__"})
        assert capsys.readouterr().out.strip()
        assert (vendor.alive, vendor.rented) == ({}, set())


def test_the_program_for_fly_makes_a_machine_and_removes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its server has no public address here: that it is waited for and removed without an answer is what is tried."""
    (sample,) = (one for one in PROGRAMS if _provider(one) == "fly")
    monkeypatch.setenv("FLY_API_TOKEN", "secret")
    vendor = Vendor(tmp_path / "vendor")
    with ExitStack() as stack:
        stack.callback(vendor.close)
        api = stack.enter_context(vendors.fly_api(vendor))
        text = sample.text.replace(
            '["FLY_API_TOKEN"])', f'["FLY_API_TOKEN"], api_url="{api}", url="http://127.0.0.1:9")'
        )
        text = text.replace("sandbox=provider", "sandbox=provider, within=0.5")
        with pytest.raises(Exception, match="did not answer within"):
            exec(compile(text, sample.name, "exec"), {"__name__": "__main__"})
        assert [name for name, *_ in vendor.calls] == ["POST", "DELETE"]
        assert vendor.alive == {}
