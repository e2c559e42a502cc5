"""The limits that a server has without any setting, and such as a test wants otherwise."""

from __future__ import annotations

import dataclasses
from typing import Any

from sandbox_agent import serve
from sandbox_agent.files import FileLimits
from sandbox_agent.redaction import Redactor
from sandbox_agent.settings import Settings

LINE_BYTES = Settings().max_line_bytes
HUB_OPTIONS = serve.hub_options(Settings(), Redactor(()))
APP_LIMITS = serve.app_limits(Settings())


def file_limits(**changed: Any) -> FileLimits:
    return dataclasses.replace(serve.file_limits(Settings()), **changed)
