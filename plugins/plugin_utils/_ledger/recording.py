# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs a task under the ledger: record the intent, send, record the outcome.

An entry is in one of four states. `intent`: a request is in flight, or was when its process died. `done`: it was
accepted and the envelope is known. `accepted`: it was accepted but the envelope was lost. `unknown`: it may or may not
have been processed. docs/ledger.md shows the transitions.
"""

from __future__ import annotations

import time
from typing import Any, Callable

from ...module_utils._call.operation import Operation
from ...module_utils._errors import ACCEPTED, NOT_SENT, REJECTED, UNKNOWN, ServicesError, sentence
from ...module_utils._http.urls import canonical_url
from ...module_utils._resources.flow import Plan, Recorded
from ...module_utils._secrets import Secrets, without_placeholders
from ...module_utils._task.task import Task
from .entries import ABSENT, DONE, INTENT, Ended, Entry, Key, LedgerError, author
from .store import Ledger

SEND, COMPARE, REFUSE = "send", "compare", "refuse"

# What a task does when it finds an entry (None: no entry). A creation must not be repeated, an update may be.
# With `force` everything is sent.
ON_FINDING = {
    None: {"POST": SEND, "PUT": SEND},
    INTENT: {"POST": REFUSE, "PUT": SEND},
    DONE: {"POST": COMPARE, "PUT": COMPARE},
    ACCEPTED: {"POST": REFUSE, "PUT": SEND},
    UNKNOWN: {"POST": REFUSE, "PUT": SEND},
}

# The state of the entry after a request, by outcome and whether the envelope came back. None: as it was before.
AFTER = {
    (ACCEPTED, True): DONE,
    (ACCEPTED, False): ACCEPTED,
    (UNKNOWN, False): UNKNOWN,
    (REJECTED, False): None,
    (NOT_SENT, False): None,
}

# What is known of a creation whose entry is in this state.
_KNOWN = {INTENT: UNKNOWN, UNKNOWN: UNKNOWN, ACCEPTED: ACCEPTED}

# What to do about a creation whose outcome could not be recorded.
_BEFORE = "Before you run it again,"
_ADOPT = "infrastructure.services.ledger_entry (state: present and its asset), else it may be created twice."
_RECORD_BY_HAND = {
    ACCEPTED: f"{_BEFORE} record it with {_ADOPT}",
    UNKNOWN: f"{_BEFORE} look for it on the service; if it is there, record it with {_ADOPT}",
    **dict.fromkeys(
        (REJECTED, NOT_SENT),
        f"{_BEFORE} remove its entry with infrastructure.services.ledger_entry (state: absent).",
    ),
}

_UNUSABLE, _UNKNOWN = "the service accepted it, but its answer was lost or unusable", "how it ended is not known"
_RECORD = (
    "It exists: do not create it again. Look up its id on the service, and record its asset with"
    " infrastructure.services.ledger_entry (state: present)."
)
_SETTLE = (
    "Look for it on the service. If it is there, confirm it with infrastructure.services.ledger_entry (state: present"
    " and its asset); if not, remove the entry with the same module (state: absent), and this task creates it."
)
_FORCE = " With force: true the task creates it whatever the ledger says."


class InDoubt(ServicesError):
    """An earlier task may have created the asset already."""

    def __init__(self, key: Key, entry: Entry, operation: Operation, is_listed: bool = False) -> None:
        """`is_listed`: whether the task is one of a list, where `force` would create all of it again."""
        self.outcome = _KNOWN[entry.state]
        how, what_next = (_UNUSABLE, _RECORD) if entry.state == ACCEPTED else (_UNKNOWN, _SETTLE)
        force = "" if is_listed or entry.state == ACCEPTED else _FORCE
        began_at = entry.began_at or entry.changed_at
        super().__init__(
            f"{operation.noun} {key.name}: the ledger says that a task began to create it at {began_at}; {how}."
            f" This task sent nothing. {what_next}{force}{operation.commands}"
        )

    def result(self) -> dict:
        """Return the result of the failed task, which itself changed nothing."""
        return dict(super().result(), changed=False)


class Overtaken(ServicesError):
    """Another task began to work on the asset at the same time; nothing was sent."""

    def __init__(self, key: Key, noun: str) -> None:
        super().__init__(
            f"{noun} {key.name}: another task began to work on it at the same time, so this one sent nothing."
            " Run it again when the other one has finished."
        )


def key_of(task: Task) -> Key:
    """Return the ledger's key for the asset of a task."""
    return Key(canonical_url(task.settings.base_url), task.resource.operation.resource, task.wanted.key)


def predict(ledger: Ledger, task: Task, execute: Callable[[Recorded | None], dict[str, Any]]) -> dict[str, Any]:
    """Run a task that sends nothing and return its result; raise LedgerError or InDoubt. `execute`: as for `record`."""
    key = key_of(task)
    before = ledger.get(key)
    result = execute(decide(before, key, task))
    return _warned(result, elsewhere(ledger, key, task) if before is None else [])


def record(
    ledger: Ledger, task: Task, secrets: Secrets, run: str, execute: Callable[[Recorded | None], dict[str, Any]]
) -> dict[str, Any]:
    """Run a task under the ledger and return its result; raise LedgerError, InDoubt or Overtaken before it sends.

    `run`: names the run of Ansible; `execute`: runs the task, given what is recorded of the asset.
    """
    key = key_of(task)
    with ledger.hold(key):
        before = ledger.get(key)
        recorded = decide(before, key, task)
        plan = task.plan(recorded)
        if plan.settled:
            return execute(recorded)
        warnings = elsewhere(ledger, key, task) if before is None else []
        begun = ledger.begin(key, intent(plan, before, secrets, run), before)
        if begun is None:
            raise Overtaken(key, task.resource.operation.noun)
        started = time.monotonic()
        result = execute(recorded)
        result = _warned(result, warnings)
        after, ended = ending(before, begun, result, time.monotonic() - started)
        try:
            is_ours = ledger.finish(key, begun, after, ended)
        except LedgerError as error:
            return unrecorded(result, error.msg, task)
        return result if is_ours else unrecorded(result, "another task changed the entry at the same time", task)


def _warned(result: dict[str, Any], warnings: list[str]) -> dict[str, Any]:
    return dict(result, warnings=[*warnings, *result.get("warnings", [])]) if warnings else result


def decide(entry: Entry | None, key: Key, task: Task) -> Recorded | None:
    """Return what is recorded if it can be relied on, None to send; raise InDoubt."""
    operation, force = task.resource.operation, task.wanted.force
    found = ON_FINDING[entry.state if entry else None][operation.method]
    if found == REFUSE and not force:
        raise InDoubt(key, entry, operation, task.is_listed)
    if found == COMPARE and not (force and operation.method == "POST"):
        return Recorded(entry.sent, entry.asset)
    return None


def intent(plan: Plan, before: Entry | None, secrets: Secrets, run: str) -> Entry:
    """Return the entry of a request that is about to be sent; `run` names the run of Ansible."""
    sent = without_placeholders(secrets.scrub({"sent": plan.body})["sent"])
    return Entry(INTENT, sent, before.asset if before else {}, by=author(), run=run)


def ending(
    before: Entry | None, begun: Entry, result: dict[str, Any], seconds: float = 0.0
) -> tuple[Entry | None, Ended]:
    """Return the entry after a task, None for none, and its row of the history."""
    outcome, asset = result.get("outcome", UNKNOWN), result.get("asset")  # None from a module that crashed
    state, trace_id = AFTER.get((outcome, asset is not None), UNKNOWN), result.get("trace_id") or ""
    after = before
    if state:
        recorded = begun.asset if asset is None else without_placeholders(asset)
        after = begun._replace(state=state, asset=recorded, changed_at="", trace_id=trace_id)
    ended = Ended(
        from_state=before.state if before else ABSENT,
        to_state=after.state if after else ABSENT,
        by=begun.by,
        run=begun.run,
        outcome=outcome,
        status=result.get("status"),
        message=result.get("msg", ""),
        seconds=round(seconds, 3),
        trace_id=trace_id,
    )
    return after, ended


def unrecorded(result: dict[str, Any], problem: str, task: Task) -> dict[str, Any]:
    """Return the failure of a task whose outcome could not be recorded, with everything that came back."""
    outcome = result.get("outcome", UNKNOWN)
    operation, said = task.resource.operation, sentence(result.get("msg", ""))
    begin = f"{said} The" if said else f"{operation.noun} {task.wanted.key}: the"
    next_step = _RECORD_BY_HAND[outcome] if operation.method == "POST" else "Run it again, which sends it once more."
    msg = f"{begin} outcome is {outcome}, but it could not be recorded: {sentence(problem)} {next_step}"
    return dict(result, failed=True, changed=outcome == ACCEPTED, msg=msg)


def elsewhere(ledger: Ledger, key: Key, task: Task) -> list[str]:
    """Return a warning when an asset of this name is recorded at another base_url, and nothing at this one."""
    others = ledger.elsewhere(key.base_url, key.resource, [key.name])
    return [moved(key, task, others[key.name])] if others else []


def moved(key: Key, task: Task, others: list[str]) -> str:
    """Return the warning about an asset that is recorded at other base_urls."""
    where = f"the ledger has one of this name at {', '.join(others)}, and nothing yet at {key.base_url}."
    what_next = (
        "If both are the same service, use the base_url that is recorded; otherwise they are two different assets."
    )
    return f"{task.resource.operation.noun} {key.name}: {where} {what_next}"
