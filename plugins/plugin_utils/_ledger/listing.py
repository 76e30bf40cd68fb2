# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lists the entries of the ledger, above all those in doubt, with the commands that settle them.

`shown`: the ledger in commands, '' if its URL has a password, so that they rely on a variable.
"""

from __future__ import annotations

import csv
import fnmatch
import json
import os
import re
import shlex

from ...module_utils._errors import NOT_SENT, InvalidInput
from ...module_utils._resources.resources import ONLY_UPDATED, RESOURCES
from ...module_utils._result import Returned
from ...module_utils._secrets import printable
from ...module_utils._task.specs import IN_DOUBT, STATES
from ...module_utils._values import Params
from . import sql
from .entries import ABSENT, STATES_IN_DOUBT, Entry, Key, is_in_doubt, is_running
from .ledger import Ledger, playbook_command

# The columns of a CSV file.
_WRITTEN = ("resource", "name", "state", "since", "id", "address")
# A word, an integer, an address or a UUID, which a spreadsheet keeps.
_PLAIN = re.compile(
    r"[^\W\d]\w*([.-]\w+)*|0|[1-9]\d{0,14}|\d{1,3}(\.\d{1,3}){3}"
    r"|[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}",
)


def list_entries(ledger: Ledger, params: Params) -> Returned:
    """Return the result of ledger_info: the entries that match the filters, or a summary of them.

    Of the entries for a file or a table only their rows. Raises LedgerError.
    """
    found = _summary(ledger, params) if params["summary"] else _listing(ledger, params)
    return dict(
        changed=False,
        outcome=NOT_SENT,
        **found,
        ledger=ledger.where,
        ledger_id=ledger.header.ledger_id,
        base_url=printable(ledger.header.base_url),
        serial=ledger.find([]).serial.number,
    )


def _listing(ledger: Ledger, params: Params) -> Returned:
    """Return the entries that match the filters, and how many there are by state."""
    name = re.compile("|".join(map(fnmatch.translate, params["names"] or ["*"])))
    counts = dict.fromkeys(STATES, 0)
    entries: dict[Key, Params] = {}
    in_flight = []
    in_doubt = []
    for key, entry in ledger.entries(*_conditions(params)):
        if not name.match(key.name):
            continue
        listed = _listed(key, entry)
        if is_running(entry):
            in_flight.append({**listed, "lease_until": entry.lease_until})
            continue
        counts[entry.state] += 1
        if is_in_doubt(key, entry):
            in_doubt.append(entry.began_at)
            listed["settle"] = settling(ledger.shown, key, entry)
        entries[key] = row_of(listed) if params["file"] or params["table"] else listed
    for key, rows in ledger.history(entries if params["history"] else ()).items():
        entries[key]["history"] = [row._asdict() for row in rows]
    return dict(
        entries=[*entries.values()],
        counts=counts,
        in_flight=in_flight,
        oldest_in_doubt=min(in_doubt, default=None),
    )


def _summary(ledger: Ledger, params: Params) -> Returned:
    """Return how many entries match the filters by state, as the database counts them."""
    counts = dict.fromkeys(STATES, 0)
    in_doubt = []
    for resource, state, number, oldest in ledger.counts(*_conditions(params)):
        counts[state] += number
        if resource not in ONLY_UPDATED and state in STATES_IN_DOUBT:
            in_doubt.append(oldest)
    return dict(counts=counts, oldest_in_doubt=min(in_doubt, default=None))


def _conditions(params: Params) -> tuple[str, list[str]]:
    """Return the SQL conditions of the filters, and their values."""
    conditions = {
        "resource = ?": params["resource"],
        "run = ?": params["run"],
        "changed_at >= ?": params["changed_since"],
    }
    given = {condition: value for condition, value in conditions.items() if value}
    wanted = params["states"] or []
    states = [state for state in wanted if state != IN_DOUBT]
    either = [f"state IN ({', '.join('?' * len(states))})"] if states else []
    either += [sql.IN_DOUBT] if IN_DOUBT in wanted else []
    all_of = [*given, *([f"({' OR '.join(either)})"] if either else [])]
    return " AND ".join(all_of), [*given.values(), *states]


def _listed(key: Key, entry: Entry) -> Params:
    """Return an entry as results show it."""
    return {
        "resource": key.resource,
        RESOURCES[key.resource].key: key.name,
        "state": entry.state,
        "sent": entry.sent,
        "asset": entry.asset or None,
        "began_at": entry.began_at,
        "changed_at": entry.changed_at,
        "by": entry.by,
        "run": entry.run,
    }


def row_of(entry: Params) -> Params:
    """Return the values of an entry of ledger_info that a table or a CSV file has."""
    asset = entry["asset"] or {}
    attributes = {**_attributes(entry["sent"]), **_attributes(asset)}
    kept = {name: entry[name] for name in (*_WRITTEN, "settle") if name in entry}
    return {
        "name": (asset or entry["sent"]).get("name"),
        "id": asset.get("id"),
        "since": entry["changed_at"],
        "address": attributes.get("ip"),
        "team": attributes.get("team"),
        **kept,
    }


def _attributes(body: Params) -> Params:
    attributes = body.get("attributes")
    return attributes if isinstance(attributes, dict) else {}


def settle_commands(shown: str) -> list[str]:
    """Return the commands that write a file of all doubts, and that record it."""
    return [
        f"{playbook_command(shown, 'in_doubt')} -e file=in_doubt.csv",
        settle_command(shown, "in_doubt.csv"),
    ]


def settle_command(shown: str, file: str) -> str:
    """Return the command that records a file after the user has filled it in."""
    return f"{playbook_command(shown, 'settle')} -e {shlex.quote(f'file={file}')}"


def settling(shown: str, key: Key, entry: Entry) -> list[str]:
    """Return the commands that settle an entry in doubt.

    The first one records the asset once its id and address are filled in; the second one removes
    the entry. There are none for a name that Ansible would template.
    """
    if "{" in key.name + shown:
        return []
    ledger = {"ledger": shown} if shown else {}
    given = {**ledger, "resource": key.resource, "name": key.name, "changed_at": entry.changed_at}
    edits = ({"asset": {"id": "ID", "attributes": {"ip": "ADDRESS"}}}, {"state": ABSENT})
    return [
        "ansible localhost -m infrastructure.services.ledger_entry -a "
        + shlex.quote(json.dumps({**given, **edit}))
        for edit in edits
    ]


def require_new_file(file: str) -> None:
    """Raise InvalidInput for a file that people may have filled in."""
    if os.path.lexists(file) and (not os.path.isfile(file) or os.path.getsize(file)):
        raise InvalidInput(
            "file",
            f"{printable(file)} exists and is not empty, so it was not overwritten. Give another"
            " name, or remove it",
        )


def write_rows(file: str, rows: list[Params], delimiter: str = ",") -> None:
    """Write the rows of entries to a new or empty file; a new one has mode 0600.

    Raise InvalidInput.
    """
    require_new_file(file)
    try:
        descriptor = os.open(file, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
            writer.writerow(_WRITTEN)
            writer.writerows([_cell(row[name]) for name in _WRITTEN] for row in rows)
    except OSError as error:
        problem = f"{printable(file)} cannot be written: {error.strerror}"
        raise InvalidInput("file", problem) from None


def _cell(value: object) -> str:
    """Return a text as a cell, as JSON if a spreadsheet might run or change it."""
    if value is None:
        return ""
    is_plain = isinstance(value, str) and _PLAIN.fullmatch(value)
    return str(value) if is_plain else json.dumps(value, ensure_ascii=False)
