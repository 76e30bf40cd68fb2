# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What this controller has seen of ledgers, noted in the home of Ansible.

A ledger that lacks the noted row has gone back in time, as after a restored backup. A place where
there was a ledger is not taken for a new one. A note that cannot be written is not missed until then.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Iterator

from .entries import Serial


class Seen:
    """The notes of one controller."""

    def __init__(self, home: str) -> None:
        """`home`: the directory of Ansible for this user."""
        self._directory = Path(home, "infrastructure.services")

    def row(self, ledger_id: str, base_url: str) -> Serial:
        """Return the noted row of a ledger, the default if there is none."""
        try:
            return Serial(*map(int, self._read(_row_name(ledger_id, base_url)).split()))
        except (ValueError, TypeError):
            return Serial()

    def note_row(self, ledger_id: str, base_url: str, row: Serial, known: Serial) -> None:
        """Note the last beginning or edit of a ledger, which has the row that was noted (`known`).

        The number is lower if that row was written back.
        """
        with suppress(OSError), self._alone():
            noted = self.row(ledger_id, base_url)  # another process may have moved it on
            if row != noted and (noted == known or row.number > noted.number):
                self._write(_row_name(ledger_id, base_url), f"{row.number} {row.revision}")

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
            with suppress(OSError):  # as on NFS
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
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


def _row_name(ledger_id: str, base_url: str) -> str:
    return f"{ledger_id}-{sha256(base_url.encode()).hexdigest()[:16]}"


def _place_name(place: str) -> str:
    return f"place-{sha256(place.encode('utf-8', 'surrogateescape')).hexdigest()[:32]}"
