"""What is fuzzed: one module each, whose `check(data)` raises when a promise about those bytes is broken."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

NAMES = ("archives", "batches", "frames", "http_heads", "journal", "lines", "sse")


def target(name: str) -> ModuleType:
    return import_module(f"fuzz.targets.{name}")
