# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What this controller has seen of ledgers, noted in the home of Ansible.

A ledger that lacks a noted row has gone back in time, as after a restored backup. A place where
there was a ledger is not taken for a new one. A note that cannot be written is not missed until then.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Iterator

from .entries import Serial

_MOST_RUNS = 100  # the newest ones of each ledger
_TRIES, _PAUSE = 20, 0.01  # of the lock; seconds between two


class Seen:
    """The notes of one controller, in one run of Ansible."""

    def __init__(self, home: str, run: str) -> None:
        """`home`: the directory of Ansible for this user; `run`: names the run."""
        self._directory = Path(home, "infrastructure.services")
        self._run = run

    def rows(self, ledger_id: str) -> list[Serial]:
        """Return the last row that each run has seen, which its ledger has unless it is older."""
        return [*self._by_run(ledger_id).values()]

    def note_row(self, ledger_id: str, row: Serial) -> None:
        """Note the last row that this run has seen."""
        with suppress(OSError), self._alone():
            rows = self._by_run(ledger_id)
            if rows.get(self._run) == row:
                return
            rows.pop(self._run, None)
            newest = [*rows.items(), (self._run, row)][-_MOST_RUNS:]
            lines = [f"{run} {row.number} {row.revision}" for run, row in newest]
            self._write(ledger_id, "\n".join(lines))

    def _by_run(self, ledger_id: str) -> dict[str, Serial]:
        """Return the noted rows by run, the newest last."""
        rows = {}
        for line in self._read(ledger_id).splitlines():
            run, *numbers = line.rsplit(" ", 2)
            with suppress(ValueError, TypeError):
                rows[run] = Serial(*map(int, numbers))
        return rows

    def ledger_at(self, place: str) -> str:
        """Return the ledger_id that was seen at a place, '' for none."""
        return self._read(_place_name(place)).strip()

    def note_place(self, place: str, ledger_id: str) -> None:
        """Note which ledger is at a place."""
        if self.ledger_at(place) != ledger_id:
            self._write(_place_name(place), ledger_id)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep the other processes of this controller from writing notes."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._directory, os.O_RDONLY)
        try:
            for _try in range(_TRIES):
                with suppress(OSError):
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                time.sleep(_PAUSE)
            yield  # also without the lock, which NFS may not have
        finally:
            os.close(descriptor)

    def _read(self, name: str) -> str:
        try:
            return (self._directory / name).read_text("ascii")
        except (OSError, ValueError):
            return ""

    def _write(self, name: str, text: str) -> None:
        """Write a note by a rename, so that it is there as a whole."""
        with suppress(OSError):
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with NamedTemporaryFile("w", dir=self._directory, delete=False) as file:
                file.write(f"{text}\n")
            Path(file.name).replace(self._directory / name)


def _place_name(place: str) -> str:
    return f"place-{sha256(place.encode('utf-8', 'surrogateescape')).hexdigest()[:32]}"
