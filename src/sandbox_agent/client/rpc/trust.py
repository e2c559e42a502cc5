"""Which certificates of servers are believed, and what is wrong with one that is not."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

from sandbox_agent.errors import ConfigError


def trusted(url: str, ca_file: str | Path | None = None) -> ssl.SSLContext | bool:
    """What httpx takes as `verify`, for a server at `url`.

    The authorities are those of `SSL_CERT_FILE` and `SSL_CERT_DIR` where one is set, else the public ones; those in
    `ca_file` come on top. Raises ConfigError for a file that cannot be used."""
    if not url.lower().startswith("https:"):
        return True
    if os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR"):
        context = _with_file(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
    else:
        import certifi  # noqa: PLC0415 - for https only

        context = _with_file(certifi.where(), None)
    if ca_file is not None:
        _load(context, str(ca_file), None)
    return context


def problem_with_certificate(error: BaseException) -> str | None:
    """Why a server's certificate was not believed, if that is what the error comes from."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return cause.verify_message or str(cause)
        cause = cause.__cause__ or cause.__context__
    return None


def _with_file(file: str | None, folder: str | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _load(context, file or None, folder or None)
    return context


def _load(context: ssl.SSLContext, file: str | None, folder: str | None) -> None:
    try:
        context.load_verify_locations(cafile=file, capath=folder)
    except OSError as error:  # ssl.SSLError is one
        named = file or folder
        reason = "it holds no certificate in PEM format" if isinstance(error, ssl.SSLError) else error.strerror
        raise ConfigError(f"the CA file {named!r} cannot be used: {reason}") from None
