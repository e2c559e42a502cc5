"""The built-in agent with a ledger: `python counting_agent.py LEDGER` notes every prompt at the moment it is run."""

from __future__ import annotations

import os
import sys

from sandbox_agent.mock_agent.__main__ import main
from sandbox_agent.mock_agent.session import Session, TurnRecord


def count_turns(ledger: str) -> None:
    fd = os.open(ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    begin_turn = Session.begin_turn

    def begin_and_note(self: Session, prompt: str) -> TurnRecord:
        os.write(fd, prompt.encode() + b"\n")
        return begin_turn(self, prompt)

    Session.begin_turn = begin_and_note  # type: ignore[method-assign]


if __name__ == "__main__":
    count_turns(sys.argv.pop(1))
    main()
