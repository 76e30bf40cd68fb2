# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From an option to an open ledger: a path is SQLite, a URL is PostgreSQL.

The last row of each ledger that this controller has seen is noted: a ledger that lacks it is older.
"""

from __future__ import annotations

import os
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...module_utils._errors import InvalidInput
from ...module_utils._task.options import LEDGER_VARIABLE
from .entries import Serial
from .ledger import Database, Ledger
from .postgresql import POSTGRESQL, PostgresDatabase, described, parsed_url
from .sqlite import SqliteDatabase, require_same_file

# By process, location and service: opening one for each item of a loop would take longer
# than its requests. A ledger that was inherited through fork() belongs to the parent.
_ledgers: dict[tuple[int, str, str], Ledger] = {}


def open_ledger(given: str, base_url: str, read_only: bool, forbids: str, files: Any) -> Ledger:
    """Open the ledger of an option, or reuse it; raise ServicesError.

    `base_url`, `read_only`: as in Ledger. One that did not exist is opened anew, because others may
    have created it. `forbids`: the option that forbids to create it, ''; `files`: reads and writes
    which file a run uses where.
    """
    location = checked_location(given)
    key = (os.getpid(), location, base_url)
    kept = _ledgers.get(key)
    if kept:
        if kept.header.state:
            return kept
        kept.close()
    file = files.read(location)
    if file:
        require_same_file(location, tuple(file))
    ledger = Ledger(open_database(location), base_url, read_only or bool(forbids))
    if ledger.is_new and forbids:
        ledger.close()
        raise InvalidInput(
            "ledger",
            f"there is none at {ledger.where}, and {forbids} is false. Check the location; if it is"
            f" to be a new one, set {forbids} to true",
        )
    if not file:  # this task may have created it
        files.write(location, ledger.database.identity)
    _ledgers[key] = ledger
    return ledger


def forget_ledgers() -> None:
    """Leave the open ledgers to threads that still use them: they are neither reused nor closed."""
    _ledgers.clear()


def checked_location(given: str, option: str = "ledger") -> str:
    """Return a URL, or an absolute path with `~` expanded; raise InvalidInput for anything else."""
    if given.startswith(POSTGRESQL):
        return given
    path = os.path.expanduser(given)
    if not os.path.isabs(path) or "\0" in path:
        raise InvalidInput(  # does not quote what may have a password
            option,
            "it is neither an absolute path nor a postgresql:// URL. Each playbook and directory"
            " would read a relative path in another way: write $PWD/fleet.db in a variable of the"
            " environment, {{ playbook_dir }}/fleet.db in a playbook",
        )
    return path


def shown_location(location: str) -> str:
    """Return a location without a password, as messages have it; raise LedgerError."""
    return described(parsed_url(location)) if location.startswith(POSTGRESQL) else location


def playbook_command(shown: str, playbook: str) -> str:
    """Return the command that runs a playbook of the collection with this ledger."""
    command = f"ansible-playbook infrastructure.services.{playbook}"
    if shlex.quote(shown) == shown:
        return f"{command} -e ledger={shown}"
    # Without double quotes, which a message would escape.
    return f"{LEDGER_VARIABLE}={shlex.quote(shown)} {command}" if shown else command


def open_database(location: str) -> Database:
    """Open the database at a checked location, which it does not create; raise ServicesError."""
    if location.startswith(POSTGRESQL):
        return PostgresDatabase(location)
    return SqliteDatabase(location)


def last_seen(home: str, ledger_id: str) -> Serial:
    """Return the noted row of a ledger, the default if there is none.

    `home`: the directory of Ansible for this user.
    """
    try:
        return Serial(*map(int, _note(home, ledger_id).read_text("ascii").split()))
    except (OSError, ValueError, TypeError):
        return Serial()


def note_seen(home: str, ledger_id: str, serial: Serial) -> None:
    """Note the last row of a ledger; a note that cannot be written is not missed until a restore."""
    note = _note(home, ledger_id)
    with suppress(OSError):
        note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        note.write_text(f"{serial.number} {serial.revision}\n", "ascii")


def _note(home: str, ledger_id: str) -> Path:
    return Path(home, "infrastructure.services", ledger_id)
