"""The limits that a server has without any setting, and such as a test wants otherwise."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sandbox_agent import serve
from sandbox_agent.files import FileLimits, FileService
from sandbox_agent.hub.feed import Feed
from sandbox_agent.hub.hub import HubOptions
from sandbox_agent.hub.processes.processes import Processes
from sandbox_agent.redaction import Redactor
from sandbox_agent.settings import Settings

LINE_BYTES = Settings().max_line_bytes
HUB_OPTIONS = serve.hub_options(Settings(), Redactor(()))
APP_LIMITS = serve.app_limits(Settings())


def hub_options_under(folder: Path) -> HubOptions:
    """Those of a hub that keeps the logs of processes there."""
    processes = dataclasses.replace(HUB_OPTIONS.processes, folder=folder / "processes")
    return dataclasses.replace(HUB_OPTIONS, processes=processes, data_dir=folder / "data")


def processes_under(folder: Path, environ: Mapping[str, str], files: FileService) -> Processes:
    return Processes(environ, files, Feed(kept_bytes=0), hub_options_under(folder).processes)


def file_limits(**changed: Any) -> FileLimits:
    return dataclasses.replace(serve.file_limits(Settings()), **changed)
