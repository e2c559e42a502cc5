"""Which of our environment variables a child may see: one rule for agents, terminals and installs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

ALLOWED = frozenset(
    "HOME PATH USER LOGNAME SHELL TERM COLORTERM LANG LANGUAGE TZ TMPDIR TEMP TMP "
    "XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_CACHE_HOME XDG_RUNTIME_DIR "
    "HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy "
    "SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS".split()
)
ALLOWED_PREFIXES = ("LC_",)
NEVER = frozenset({"SANDBOX_AGENT_TOKEN", "SANDBOX_AGENT_DATABASE_URL"})


def child_environment(
    ours: Mapping[str, str],
    *,
    extra: Mapping[str, str] | None = None,
    passthrough: Iterable[str] = (),
    prefixes: tuple[str, ...] = (),
) -> dict[str, str]:
    """The allow-listed part of `ours`, what `passthrough` and `prefixes` name of it, and `extra` on top."""
    names = ALLOWED | set(passthrough)
    kept = {
        name: value
        for name, value in ours.items()
        if (name in names or name.startswith((*ALLOWED_PREFIXES, *prefixes))) and name not in NEVER
    }
    return {**kept, **(extra or {})}
