"""Databases that earlier versions left behind, stopped or killed, are read as those versions told them.

`tools/released_database.py` made them: a version that is released gets a folder of its own."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.rpc import connected
from support.server import running_server

RELEASED = sorted((Path(__file__).parent / "released").glob("*/*"))


def _kept(folder: Path, data: Path) -> dict[str, Any]:
    """Put the files where a server looks for them; what was said of them."""
    data.mkdir(parents=True)
    for file in folder.glob("history.db*.gz"):
        (data / file.name.removesuffix(".gz")).write_bytes(gzip.decompress(file.read_bytes()))
    said: dict[str, Any] = json.loads(gzip.decompress((folder / "said.json.gz").read_bytes()))
    return said


def test_there_is_one_of_each_kind() -> None:
    assert {folder.name for folder in RELEASED} == {"killed", "stopped"}


@pytest.mark.parametrize("folder", RELEASED, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
async def test_sessions_and_events_are_those_that_the_older_server_told(folder: Path, tmp_path: Path) -> None:
    said = _kept(folder, tmp_path / "home" / "data")
    async with running_server(tmp_path / "home") as server, httpx.AsyncClient(base_url=server.url) as http:
        now = {one["sessionId"]: one for one in (await http.get("/v1/sessions")).json()["sessions"]}
        assert list(now) == [one["sessionId"] for one in said["sessions"]]
        for then in said["sessions"]:
            kept = ("agent", "title", "cwd", "createdAt", "updatedAt", "ended")
            assert {name: now[then["sessionId"]][name] for name in kept} == {name: then[name] for name in kept}
            transcript = await http.get(f"/v1/sessions/{then['sessionId']}/transcript")
            assert transcript.status_code == 200, transcript.text
        found = (await http.get("/v1/search", params={"q": "older version"})).json()
        assert [one["session"]["title"] for one in found["sessions"]] == ["The first one"]
        async with connected(server.url) as rpc:
            for name, events in said["events"].items():
                page = await rpc.request("_sandboxagent/session/events", {"sessionId": name, "limit": 1000})
                assert page["result"]["events"][: len(events)] == events
            new = await rpc.new_session("/tmp")
            assert (await rpc.prompt(new, "hello"))["result"]["stopReason"] == "end_turn"
    assert list((tmp_path / "home" / "data").glob("*damaged*")) == []
