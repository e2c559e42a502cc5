"""Turns what the operating system says into errors of the product."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from sandbox_agent.archives.rules import clip
from sandbox_agent.errors import (
    Conflict,
    Forbidden,
    InsufficientStorage,
    InvalidParams,
    NotFound,
    SandboxAgentError,
    TooLarge,
    TooMany,
)

_KINDS: dict[int, tuple[type[SandboxAgentError], str]] = {
    errno.ENOENT: (NotFound, "does not exist"),
    errno.ESTALE: (NotFound, "does not exist any more"),
    errno.EEXIST: (Conflict, "exists already"),
    errno.ENOTEMPTY: (Conflict, "is a directory that is not empty"),
    errno.EISDIR: (Conflict, "is a directory"),
    errno.ENOTDIR: (Conflict, "is not a directory, or lies beneath something that is not one"),
    errno.EBUSY: (Conflict, "is in use by the system"),
    errno.EXDEV: (Conflict, "lies on another device"),
    errno.ETXTBSY: (Conflict, "is a program that is running"),
    errno.EACCES: (Forbidden, "may not be accessed by the server's user"),
    errno.EPERM: (Forbidden, "may not be changed by the server's user"),
    errno.EROFS: (Forbidden, "lies on a read-only file system"),
    errno.ENXIO: (Forbidden, "is not a regular file"),
    errno.ELOOP: (
        InvalidParams,
        "leads through too many symbolic links, or was changed while it was looked up",
    ),
    errno.ENAMETOOLONG: (InvalidParams, "has a name that is too long"),
    errno.EINVAL: (InvalidParams, "cannot be used so"),
    errno.EILSEQ: (InvalidParams, "has a name that this file system cannot store"),
    errno.EFBIG: (TooLarge, "would become larger than the system allows"),
    errno.ENOSPC: (InsufficientStorage, "could not be written: no space is left on the disk"),
    errno.EDQUOT: (InsufficientStorage, "could not be written: the disk quota is used up"),
    errno.EMFILE: (TooMany, "could not be opened: too many files are open"),
    errno.ENFILE: (TooMany, "could not be opened: too many files are open"),
}


def explain(error: OSError, path: str) -> SandboxAgentError:
    """The product's error for `error`, told about `path`."""
    kind, words = _KINDS.get(error.errno or 0, (SandboxAgentError, f"failed: {error.strerror}"))
    return kind(f"{clip(path)} {words}")


@contextmanager
def explained(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise explain(error, path) from error
