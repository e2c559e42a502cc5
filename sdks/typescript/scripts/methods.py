"""Makes src/rpc/methods.gen.ts from the table of methods in core; with --check, says whether that would change it."""

from __future__ import annotations

import sys
from pathlib import Path

from sandbox_agent.core.methods import EXTENSION_PREFIX, METHODS

TARGET = Path(__file__).parent.parent / "src" / "rpc" / "methods.gen.ts"


def made() -> str:
    """The file as it should be."""
    rows = [f'  "{name}": {str(method.may_repeat).lower()},' for name, method in METHODS.items()]
    return "\n".join(
        [
            "// Made from src/sandbox_agent/core/methods.py by `make generated`. Do not edit.",
            f'export const EXTENSION_PREFIX = "{EXTENSION_PREFIX}";',
            "",
            "/** Whether a request that the server may have already does no harm when it is sent again. */",
            "export const MAY_REPEAT: Readonly<Record<string, boolean>> = {",
            *rows,
            "};",
            "",
        ]
    )


def main() -> int:
    if "--check" not in sys.argv:
        TARGET.write_text(made())
        return 0
    if TARGET.read_text() == made():
        return 0
    sys.stderr.write(f"{TARGET} does not match core/methods.py: run make generated and commit the result\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
