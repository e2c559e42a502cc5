"""The built-in agent without ids of messages, which version 1 does not ask for: `python nameless_agent.py [FLAG…]`."""

from __future__ import annotations

import json
import subprocess
import sys


def main(flags: list[str]) -> int:
    command = [sys.executable, "-m", "sandbox_agent.mock_agent", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as agent:
        for line in agent.stdout or ():
            message = json.loads(line)
            message.get("params", {}).get("update", {}).pop("messageId", None)
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()
    return agent.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
