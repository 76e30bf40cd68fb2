# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the ledger makes of a task: begin, run, finish.

An entry is in one of four states. `intent`: a request is on its way, or was when its process died. `done`: it was
accepted and the envelope is known. `accepted`: it was accepted and the envelope was lost. `unknown`: nobody knows.
A request that was rejected or not sent leaves the entry as it was before.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, Callable

from ..module_utils import _errors
from ..module_utils._connection import settings_from
from ..module_utils._errors import ACCEPTED, NOT_SENT, REJECTED, UNKNOWN
from ..module_utils._resource import Plan, Recorded
from ..module_utils._secrets import scrub
from ..module_utils._url import canonical_url
from ._ledger import Entry, Key, Ledger, LedgerError

INTENT, DONE, LOST, UNCLEAR = "intent", "done", "accepted", "unknown"
SEND, COMPARE, REFUSE = "send", "compare with what is recorded", "refuse"

# What a task does when it finds an entry (None: no entry). A creation must not be repeated; an update may be.
ON_FINDING = {
    None: {"POST": SEND, "PUT": SEND},
    INTENT: {"POST": REFUSE, "PUT": SEND},
    DONE: {"POST": COMPARE, "PUT": COMPARE},
    LOST: {"POST": REFUSE, "PUT": SEND},
    UNCLEAR: {"POST": REFUSE, "PUT": SEND},
}

# What the outcome of a request makes of the entry; None: as it was before.
AFTER = {ACCEPTED: DONE, UNKNOWN: UNCLEAR, REJECTED: None, NOT_SENT: None}

# What is known of a creation whose entry is in this state.
_KNOWN = {INTENT: UNKNOWN, UNCLEAR: UNKNOWN, LOST: ACCEPTED}


class Undecided(_errors.ServicesError):
    """An earlier task may have created the asset already."""

    def __init__(self, key: Key, entry: Entry, noun: str) -> None:
        super().__init__(
            f"The ledger says that a task began to create the {noun} {key.name} ({entry.changed_at}), and not how it ended"
            f"{', only that the service accepted it' if entry.state == LOST else ''}. Look for it on the service, then either confirm it with"
            " infrastructure.services.ledger_entry (state: present and its asset), or remove the entry with the same module"
            " (state: absent) so that this task creates it, or set force: true to create it all the same."
        )
        self.outcome = _KNOWN[entry.state]


def booked(
    ledger: Ledger, resource: ModuleType, params: dict, check_mode: bool, secrets: set[str], execute: Callable[[Recorded | None], dict[str, Any]]
) -> dict[str, Any]:
    """Run a task by the book and return its result; raise InvalidInput, LedgerError or Undecided before anything is sent.

    `execute`: runs the task, given what is recorded of the asset; `secrets`: what must not be written down.
    """
    settings = settings_from(params)
    plan = resource.plan({**params, "send": "given"})
    plan.encoded()
    key = Key(canonical_url(settings.base_url), plan.operation.resource, plan.key)
    if check_mode:
        return execute(_decide(ledger.get(key), key, plan, params["force"]))
    with ledger.hold(key):
        before = ledger.get(key)
        recorded = _decide(before, key, plan, params["force"])
        if resource.plan(params, recorded).settled:
            return execute(recorded)
        sent = scrub(plan.body, secrets)
        ledger.put(key, Entry(INTENT, sent, before.asset if before else {}))
        result = execute(recorded)
        return _finish(ledger, key, before, sent, result)


def _decide(entry: Entry | None, key: Key, plan: Plan, force: bool) -> Recorded | None:
    """Return what is recorded where it can be relied on, None to send; raise Undecided."""
    method = plan.operation.method
    found = ON_FINDING[entry.state if entry else None][method]
    if found == REFUSE and not force:
        raise Undecided(key, entry, plan.operation.noun)
    if found == COMPARE and not (force and method == "POST"):
        return Recorded(entry.sent, entry.asset)
    return None


def _finish(ledger: Ledger, key: Key, before: Entry | None, sent: dict, result: dict[str, Any]) -> dict[str, Any]:
    """Write down how it ended; when that fails the task fails, with all that came back in its result."""
    outcome = result.get("outcome", UNKNOWN)  # a module that crashed says nothing
    state, asset = AFTER[outcome], result.get("asset")
    after = before if state is None else Entry(LOST if state == DONE and asset is None else state, sent, asset or {})
    try:
        if after:
            ledger.put(key, after, durable=False)
        else:
            ledger.delete(key)
    except LedgerError as error:
        msg = f"The request ended with outcome {outcome}, but that could not be written down. {error.msg}. {result.get('msg', '')}".rstrip()
        return dict(result, failed=True, changed=outcome == ACCEPTED, msg=msg)
    return result
