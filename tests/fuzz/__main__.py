"""`make fuzz SECONDS=600 TARGETS="frames sse"`: inputs without end, guided by coverage where atheris is installed.

An input that breaks a promise is written to the target's corpus, where the suite tries it from then on.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import random
import subprocess
import sys
import time
from pathlib import Path

from fuzz.inputs import CORPUS, corpus, mutations
from fuzz.targets import NAMES, target

SCRATCH = Path(__file__).parents[2] / ".cache" / "fuzz"


def main() -> None:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", default=NAMES)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each target")
    parser.add_argument("--guided", action="store_true", help="run one target under atheris; used by this program")
    wanted = parser.parse_args()
    if wanted.guided:
        fuzz_guided(wanted.targets[0], wanted.seconds)
    has_guide = importlib.util.find_spec("atheris") is not None
    run = _guided if has_guide else fuzz
    broken = [name for name in wanted.targets if not run(name, wanted.seconds)]
    if broken:
        raise SystemExit(f"broken: {', '.join(broken)}; the inputs are in {CORPUS}")


def fuzz(name: str, seconds: float) -> bool:
    """Without a guide. Whether all promises were kept."""
    choice = random.Random(time.time_ns())
    check, until = target(name).check, time.monotonic() + seconds
    for count, data in enumerate(mutations([path.read_bytes() for path in corpus(name)], choice)):
        if time.monotonic() > until:
            print(f"{name}: {count:,} inputs, unguided", flush=True)
            break
        try:
            check(data)
        except Exception:  # noqa: BLE001 - whatever it is, it is what we look for
            kept = CORPUS / name / f"crash-{hashlib.sha256(data).hexdigest()[:12]}"
            kept.write_bytes(data)
            sys.excepthook(*sys.exc_info())
            return False
    return True


def fuzz_guided(name: str, seconds: float) -> None:
    """Does not return: the guide ends the process."""
    import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]

    with atheris.instrument_imports(include=["sandbox_agent", "fuzz"]):
        check = target(name).check
    scratch = SCRATCH / name
    scratch.mkdir(parents=True, exist_ok=True)
    flags = [f"-max_total_time={int(seconds)}", "-max_len=16384", "-timeout=10", "-verbosity=0"]
    atheris.Setup([sys.argv[0], *flags, f"-artifact_prefix={CORPUS / name}/", str(scratch), str(CORPUS / name)], check)
    atheris.Fuzz()


def _guided(name: str, seconds: float) -> bool:
    """In a process of its own, which a broken promise ends."""
    command = [sys.executable, "-m", "fuzz", name, "--guided", "--seconds", str(seconds)]
    print(f"{name}: guided by coverage", flush=True)
    return subprocess.run(command, check=False).returncode == 0


if __name__ == "__main__":
    main()
