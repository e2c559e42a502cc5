"""Files of the sandbox: read, write, list, move, delete, and unpack archives, within the roots."""

from sandbox_agent.files.reading import OpenFile
from sandbox_agent.files.results import FsActionResult, FsEntry, FsMoveResult, FsStat, FsUploadResult, FsWriteResult
from sandbox_agent.files.service import FileLimits, FileService

__all__ = [
    "FileLimits",
    "FileService",
    "FsActionResult",
    "FsEntry",
    "FsMoveResult",
    "FsStat",
    "FsUploadResult",
    "FsWriteResult",
    "OpenFile",
]
