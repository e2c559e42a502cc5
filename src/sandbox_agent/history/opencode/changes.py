"""Which files a session has changed, as OpenCode lists them: one entry a file, with the patches of all edits."""

from __future__ import annotations

from sandbox_agent.core.json_values import Object
from sandbox_agent.history.opencode.limits import PATCH_CHARS
from sandbox_agent.history.opencode.tools import Edit

_FILES = 1000
_ALL_PATCHES = 2_000_000


class FileChanges:
    """`chars` bounds all patches together; files past it are listed with their counts alone."""

    def __init__(self, chars: int = _ALL_PATCHES) -> None:
        self._limit = chars
        self._files: dict[str, Object] = {}
        self._chars = 0

    def add(self, edit: Edit) -> None:
        known = self._files.get(edit.path)
        if known is None:
            if len(self._files) >= _FILES:
                return
            known = self._files[edit.path] = {
                "file": edit.path,
                "patch": "",
                "additions": 0,
                "deletions": 0,
                "status": edit.status,
            }
        known["additions"] += edit.added
        known["deletions"] += edit.removed
        has_place = self._chars + len(edit.patch) <= self._limit
        if has_place and len(known["patch"]) + len(edit.patch) <= PATCH_CHARS:
            known["patch"] += ("\n" if known["patch"] else "") + edit.patch
            self._chars += len(edit.patch)

    def listed(self) -> list[Object]:
        return [{**file} for file in self._files.values()]

    def summary(self) -> Object:
        """Counts over all files."""
        files = self._files.values()
        return {
            "additions": sum(file["additions"] for file in files),
            "deletions": sum(file["deletions"] for file in files),
            "files": len(self._files),
        }
