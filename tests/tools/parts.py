# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the parts of `make test` side by side: a line for each as it ends, and on failure what to
look at.

    python tests/tools/parts.py DIRECTORY NAME=COMMAND...

The output of each command goes to DIRECTORY/NAME.log. Of a command that fails, the end of its
output is shown, or all that pytest says about the failures. Lines that start with `PART ` are shown
as they come (tests/support/parts.py).
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from pathlib import Path

PREFIX = "PART "
LONGEST = 200  # lines shown of one command's failures
TIME_LIMIT = 1800  # seconds; a hang is a failure

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
        say(f"{self.name:10} {word}, {time.monotonic() - start:.0f} s, {self.log}")

    def failures(self) -> list[str]:
        """Return what its output says about the failures."""
        lines = self.log.read_text(encoding="utf-8").splitlines()
        starts = [
            number
            for number, line in enumerate(lines)
            if re.match(r"=+ (FAILURES|ERRORS) =+", line)
        ]
        shown = lines[starts[0] :] if starts else lines[-60:]
        if len(shown) <= LONGEST:
            return shown
        half = LONGEST // 2
        return [
            *shown[:half],
            f"... {len(shown) - LONGEST} lines left out: {self.log}",
            *shown[-half:],
        ]


def main(directory: str, *commands: str) -> int:
    """Return 0 if every command passed."""
    Path(directory).mkdir(parents=True, exist_ok=True)
    parts = [Part(Path(directory), *command.split("=", 1)) for command in commands]
    failed = [part for part in parts if not part.wait()]
    for part in failed:
        say(f"\n--- {part.name}: {part.log}")
        say("\n".join(part.failures()))
    say(f"{len(parts) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
