# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Leaves out new entries that only reports ask for and that the ledger contradicts.

One such entry does not keep the other machines of a report from the ledger: a person cannot correct
a report.
"""

from __future__ import annotations

from collections import defaultdict

from .adopting import ADOPTED, BY_EDIT, LEFT_OUT, Edit, Item
from .entries import ABSENT, Key
from .store import Ledger

_FORGOTTEN = (
    "left out, since ledger_entry or settle removed the entry after the report. If the machine"
    " exists, adopt it with infrastructure.services.ledger_entry."
)
_TAKEN = (
    "left out, since its id {} is that of {}. A run that lists this name will create a machine. If"
    " the other name is wrong, forget it with infrastructure.services.ledger_entry (state:"
    " absent), and repeat this command."
)


def without_contradicted(ledger: Ledger, items: list[Item], edits: list[Edit]) -> list[Edit]:
    """Return the edits of the items, those without effect that only add and are contradicted."""
    new = {item.key: item for item, edit in zip(items, edits) if item.only_adds and not edit.before}
    reasons = _forgotten(ledger, new)
    adopted = {edit.key for edit in edits if edit.kind == ADOPTED} - reasons.keys()
    reasons.update(_taken(ledger, [item for key, item in new.items() if key in adopted]))
    return [
        Edit(edit.key, None, None, LEFT_OUT, reason=reasons[edit.key])
        if edit.key in reasons
        else edit
        for edit in edits
    ]


def _forgotten(ledger: Ledger, new: dict[Key, Item]) -> dict[Key, str]:
    """Return a reason for each entry that an edit removed after the run of its report.

    An edit in the second in which the run ended came after it.
    """
    names: dict[tuple[str, str], list[str]] = defaultdict(list)
    for key in new:
        names[key.base_url, key.resource].append(key.name)
    reasons = {}
    for (base_url, resource), some in names.items():
        for name, rows in ledger.history(base_url, resource, some).items():
            key = Key(base_url, resource, name)
            ended_at = new[key].changed_at
            removed = [row.at for row in rows if (row.to_state, row.message) == (ABSENT, BY_EDIT)]
            if ended_at and removed and removed[-1] >= ended_at:
                reasons[key] = _FORGOTTEN
    return reasons


def _taken(ledger: Ledger, adopted: list[Item]) -> dict[Key, str]:
    """Return a reason for each entry whose id another name has, in the ledger or a later report."""
    names = {}
    for base_url, resource in {item.key[:2] for item in adopted}:
        where = {"base_url = ?": (base_url,), "resource = ?": (resource,)}
        for key, entry in ledger.entries(where):
            names[base_url, resource, str(entry.asset.get("id"))] = key.name
    reasons = {}
    for item in sorted(adopted, key=lambda item: item.changed_at or "", reverse=True):
        name = names.setdefault((*item.key[:2], item.asset_id), item.key.name)
        if name != item.key.name:
            reasons[item.key] = _TAKEN.format(item.asset_id, name)
    return reasons
