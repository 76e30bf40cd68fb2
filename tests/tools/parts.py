"""Run the parts of `make test` side by side: a line for each as it ends, and on failure what to
look at.

    python tests/tools/parts.py DIRECTORY NAME=COMMAND...

The output of each command goes to DIRECTORY/NAME.log. Of a command that fails, the end of its
output is shown. Lines that start with `PART ` are shown as they come (tests/support/parts.py).
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from pathlib import Path

PREFIX = "PART "
LONGEST = 120  # lines shown of a command that failed
TIME_LIMIT = 1800  # seconds; a hang is a failure
CLOSING = re.compile(r"=* *(\d+ (?:passed|failed|error).* in [\d.]+s.*?) *=*$")  # of pytest

_screen = threading.Lock()


def say(line: str) -> None:
    """Print a line at once, never mixed with another one."""
    with _screen:
        print(line, flush=True)


class Part:
    """One command, run in a thread."""

    def __init__(self, directory: Path, name: str, command: str) -> None:
        self.name, self._command, self.log = name, command, directory / f"{name}.log"
        self.status: int | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def wait(self) -> bool:
        """Return whether it passed."""
        self._thread.join()
        return self.status == 0

    def _run(self) -> None:
        start = time.monotonic()
        with (
            self.log.open("w", encoding="utf-8") as log,
            subprocess.Popen(
                ["bash", "-c", f"exec timeout {TIME_LIMIT} {self._command}"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            ) as process,
        ):
            for line in process.stdout:
                log.write(line)
                log.flush()
                if line.startswith(PREFIX):
                    say(f"    {line.removeprefix(PREFIX).rstrip()}")
        self.status = process.returncode
        word = "passed" if self.status == 0 else f"FAILED ({self.status})"
        say(f"{self.name:10} {word}, {time.monotonic() - start:.0f} s, {self.log}{self._closing()}")

    def _closing(self) -> str:
        """Return the last line of pytest, which says how many tests ran."""
        lines = self.log.read_text(encoding="utf-8").splitlines()
        return "".join(f": {found[1]}" for line in lines if (found := CLOSING.match(line)))

    def end_of_output(self) -> str:
        """Return what its output says last."""
        lines = self.log.read_text(encoding="utf-8").splitlines()
        return "\n".join(lines[-LONGEST:])


def main(directory: str, *commands: str) -> int:
    """Return 0 if every command passed."""
    Path(directory).mkdir(parents=True, exist_ok=True)
    parts = [Part(Path(directory), *command.split("=", 1)) for command in commands]
    failed = [part for part in parts if not part.wait()]
    for part in failed:
        say(f"\n--- {part.name}: {part.log}")
        say(part.end_of_output())
    say(f"{len(parts) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
