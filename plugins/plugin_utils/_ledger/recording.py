# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs tasks under the ledger: wait for leases, plan, record the intent, record the outcome."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import count
from typing import Callable, Mapping

from ...module_utils._call.client import MARGIN, Clocks, Lease, read_clocks
from ...module_utils._errors import (
    ACCEPTED,
    UNKNOWN,
    InvalidInput,
    Message,
    Overtaken,
    ServicesError,
    listing,
)
from ...module_utils._resources.planning import Plan, Task
from ...module_utils._result import Result
from ...module_utils._secrets import Secrets, printable, without_placeholders
from ...module_utils._task.task import Unrecorded
from .commits import Commits
from .editing import entry_after, taken_ids
from .entries import (
    ABSENT,
    AFTER,
    DONE,
    INTENT,
    NO_LIMIT,
    Change,
    Entry,
    HistoryRow,
    Key,
    LedgerError,
    Serial,
    Write,
    id_of,
    is_in_doubt,
    is_running,
    noted,
    stamped,
    state_of,
    time_of,
)
from .ledger import Ledger, Snapshot, playbook_command

_LOOK = 0.5  # seconds between two looks at leases of others
_SILENT = 2  # looks before a line on the screen says so
# What a task finds in the ledger, by the state of the entry.
_FOUND = {
    UNKNOWN: (
        "the ledger says that a task began to create it at {}, and how that ended is not known."
        " This task sent nothing. Look for it on the service."
    ),
    ACCEPTED: (
        "the ledger says that a task began to create it at {}. The service accepted it, but its"
        " answer was lost or unusable. This task sent nothing."
    ),
}
# What a creation in doubt needs, by its state.
_NEXT = {
    UNKNOWN: (
        "The ledger does not send it again until it is settled. Look again later: it may still"
        " appear."
    ),
    ACCEPTED: "It exists: look up its id on the service and record it.",
}
_IN_FLIGHT = (
    "{} has a request in flight for it since {}, at most until {}, so what it needs is not known"
    " yet. Make the plan again after that."
)
_OVERTAKEN = (
    "its entry changed after it was planned, so nothing was sent. An approved plan is good for one"
    " effect on each asset: make a new plan (--check) and have it approved. Without an approved"
    " plan, another task began to work on it: run it again later."
)


class Intent(Lease):
    """A recorded intent, whose lease its task measures."""

    def __init__(self, recording: Recording, task: Task, change: Change, since: Clocks) -> None:
        super().__init__(change.lease_seconds, since, recording.clocks)
        self.task = task
        self.change = change
        self.began = time.monotonic()  # seconds
        self._recording = recording

    def renew(self, wait: float) -> None:
        """Extend the lease for a wait in seconds and one attempt; raise ServicesError."""
        seconds = round(wait + self.task.settings.timeout + MARGIN)
        key, entry = self.change.key, self.change.after
        change = stamped(Change(Write.RENEWAL, key, entry, entry, lease_seconds=seconds))
        since = self._recording.clocks()  # before the statement is handed over
        if not self._recording.commits.write(change):
            raise ServicesError("another task changed its entry in the ledger")
        self.change, self.seconds, self.since = change, seconds, since


class Recording(Unrecorded):
    """The ledger of the tasks of one resource; every method raises ServicesError."""

    def __init__(
        self,
        ledger: Ledger,
        secrets: Secrets,
        run: str,
        approved_rows: Mapping[str, int] | None = None,
        show: Callable[[str], None] = lambda line: None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """`run` names the run of Ansible; `show`: displays a line; `pause`: waits for others.

        `approved_rows`: the last row of each asset in the approved plan; None if there is no plan.
        """
        self.ledger = ledger
        self.commits = Commits(ledger)
        self.clocks: Callable[[], Clocks] = read_clocks
        self.serial = Serial()  # when the tasks were planned
        # The outcomes of requests that may have had an effect.
        self._recorded: dict[Key, Change] = {}
        self._secrets = secrets
        self._run = run
        self._approved_rows = approved_rows
        self._show = show
        self._pause = pause

    def plan_all(self, tasks: list[Task], for_approval: bool = False) -> list[Task]:
        """Wait for running leases, then return the tasks, each with its plan or its error."""
        keys = [*map(key_of, tasks)]
        for look in count():
            found = self.ledger.find(keys, for_approval)
            running = {key.name: entry for key, entry in found.entries.items() if is_running(entry)}
            if not running:
                break
            if for_approval:
                break  # check mode shows them in flight
            self.ledger.start_leases()
            if look == _SILENT:
                self._show(_waiting_line(running))
            self._pause(_LOOK)
        self.serial = found.serial
        planned = {key: self._plan(task, key, found) for key, task in zip(keys, tasks)}
        adopted = {
            key: task.plan.adopted
            for key, task in planned.items()
            if task.plan and task.plan.adopted
        }
        for key, problem in taken_ids(self.ledger, adopted).items() if adopted else ():
            error = InvalidInput("id", printable(problem))
            planned[key] = replace(planned[key], plan=None, error=error)
        return [*planned.values()]

    def _plan(self, task: Task, key: Key, found: Snapshot) -> Task:
        """Return a task with its plan, or with the error that forbids it."""
        entry = found.entries.get(key)
        task = replace(task, entry=entry, last_row=found.last_rows.get(key, 0))
        creates, identifier = task.operation.creates, task.id
        if creates and identifier is not None and state_of(entry) != DONE:
            return self._adopting(task)
        if entry is None and task.operation.removes and identifier is None:
            return replace(task, plan=Plan({}, {}, settled=True))
        if entry and is_running(entry):  # in check mode, which waits for nobody
            text = _IN_FLIGHT.format(
                printable(entry.by), entry.began_at, time_of(entry.lease_until)
            )
            error = ServicesError(Message(text, task.asset), UNKNOWN, plan="in_flight")
            return replace(task, error=error)
        if entry and is_in_doubt(key, entry):
            state = ACCEPTED if entry.state == ACCEPTED else UNKNOWN
            text = _FOUND[state].format(entry.began_at)
            msg = self._in_doubt(Message(text, task.asset, since=entry.began_at), state)
            # This task sent nothing.
            return replace(task, error=ServicesError(msg, state, changed=False))
        return task.planned()

    def gone_back(self, tasks: list[Task]) -> str:
        """Return why none of these planned tasks may be sent, '' if they may."""
        is_sent = any(task.plan and not (task.plan.settled or task.plan.adopted) for task in tasks)
        return self.ledger.gone_back() if is_sent else ""

    def _adopting(self, task: Task) -> Task:
        """Return the task of an asset that exists, with the plan to record it."""
        body = {**task.body, "id": task.id}
        present = {"state": "present", "asset": body, "changed_at": None}
        try:
            adopted = entry_after(key_of(task), task.entry, present, self._secrets)
        except InvalidInput as error:
            return replace(task, error=InvalidInput("id", error.problem))
        return replace(task, plan=Plan(body, adopted.asset if adopted else {}, adopted=adopted))

    def adopt(self, task: Task, result: Result) -> Result:
        """Record an asset that exists, and return the result; raise Overtaken, or LedgerError."""
        edit = Change(Write.ADOPT, key_of(task), task.entry, task.required_plan().adopted)
        adopted = self._begin(task, noted(edit, self._run, "by id"))
        return result.but(began=adopted.after and adopted.after.began)

    def begin(self, task: Task, seconds: float) -> Intent:
        """Record the intent with a lease of some seconds; raise Overtaken, or LedgerError."""
        body = self._secrets.recordable(task.required_plan().body)
        intent = Entry(INTENT, body, task.entry.asset if task.entry else {}, run=self._run)
        row = HistoryRow(state_of(task.entry), INTENT, run=self._run)
        key, before = key_of(task), task.entry
        begun = Change(Write.BEGIN, key, before, intent, row, lease_seconds=round(seconds))
        since = self.clocks()  # before the statement is handed over
        return Intent(self, task, self._begin(task, begun), since)

    def _begin(self, task: Task, change: Change) -> Change:
        """Write the first change of a task, and return it as it was written."""
        approved = self._approved_rows
        limit = NO_LIMIT if approved is None else approved.get(task.key, 0)
        change = stamped(replace(change, approved_row=limit))
        try:
            if self.commits.write(change):
                return change
        except LedgerError as error:  # which may come after the commit took effect
            raise LedgerError(
                f"{error.problem}. If the ledger lists {printable(task.key)} in doubt, it may be"
                " settled as absent"
            ) from None
        self.ledger.find([])  # raises if the ledger has moved
        self.ledger.require_not_back()
        raise Overtaken(Message(_OVERTAKEN, task.asset))

    def finish(self, intent: Intent, result: Result) -> Result:
        """Record how a task ended and return its result, with the next step if it is in doubt."""
        task = intent.task
        result = result.but(began=intent.change.revision)
        change = _ending(intent, result)
        may_exist = result.outcome in (ACCEPTED, UNKNOWN) and change.after is not None
        try:
            is_as_begun = self._record(change, may_exist)
        except LedgerError as error:
            text = (
                f"The outcome is {result.outcome}, but it could not be recorded: {error.problem}."
                " Before you run it again, settle its entry with"
                " infrastructure.services.ledger_entry."
            )
            msg = result.msg._replace(asset=task.asset).then(text)
            return result.but(failed=True, changed=result.outcome == ACCEPTED, msg=msg)
        if may_exist:
            self._recorded[change.key] = change
            if not is_as_begun:
                result = result.but(warnings=(*result.warnings, self._why_gone(task)))
        return self.with_next_step(result, task, state_of(change.after))

    def _record(self, change: Change, may_exist: bool) -> bool:
        """Write an outcome, and anew where its entry is gone; return whether it was there."""
        is_as_begun = self.commits.write(change)
        if may_exist and not is_as_begun and not self.commits.write(replace(change, before=None)):
            raise LedgerError("another task changed its entry meanwhile")
        return is_as_begun

    def recover(self) -> tuple[list[str], list[str]]:
        """Record anew what the ledger has lost since; return what was, and what could not be.

        A server that took over, or a file that was copied over, may lack an outcome, or the whole
        entry. What somebody else has changed since is left. Raises LedgerError.
        """
        recorded = dict(self._recorded)  # threads may be adding some
        if not recorded:
            return [], []
        self.ledger.start_leases()  # a write, which a server that lags behind refuses
        entries, rows = self.ledger.find(recorded).entries, self.ledger.history(recorded)
        restored, missing = [], []
        for key, change in recorded.items():
            entry = entries.get(key)
            if change.revision in [row.revision for row in rows[key]]:
                continue
            if _is_lost(change, entry, rows[key]) and (
                self.commits.write(change) or self.commits.write(replace(change, before=None))
            ):
                restored.append(printable(key.name))
            else:
                ids = [id_of(each) or "without an id" for each in (change.after, entry) if each]
                missing.append(printable(f"{key.name} ({', now '.join(ids)})"))
        return restored, missing

    def _why_gone(self, task: Task) -> Message:
        """Return a warning about an entry that was gone when its request ended."""
        key = key_of(task)
        try:
            rows = self.ledger.history([key])[key]
        except LedgerError:  # the outcome is recorded
            rows = []
        edits = [row for row in rows[-2:-1] if row.to_state == ABSENT and not row.outcome]
        why = "the ledger went back in time, as after a restored backup"
        if edits:
            why = f"{printable(edits[0].by)} settled it as absent at {edits[0].at}"
        return Message(
            f"its entry was gone when the request ended, and was recorded anew: {why}.", task.asset
        )

    def with_next_step(self, result: Result, task: Task, state: str) -> Result:
        """Return the result, with how to settle a creation whose entry is now in this state."""
        if not task.operation.creates or state not in _NEXT:
            return result
        return result.but(msg=self._in_doubt(result.msg, state))

    def _in_doubt(self, msg: Message, state: str) -> Message:
        """Return the message with the next step, and the command that lists what is in doubt."""
        command = playbook_command(self.ledger.shown, "in_doubt")
        return msg.then(_NEXT[state])._replace(command=command)

    def not_listed(self, tasks: list[Task]) -> list[str]:
        """Return the names of the resource that are recorded but not in the list."""
        listed = {*map(key_of, tasks)}
        resource = tasks[0].operation.resource.name if tasks else ""
        found = self.ledger.entries("resource = ?", (resource,))
        return [key.name for key, _entry in found if key not in listed]


def key_of(task: Task) -> Key:
    """Return the ledger key of the asset of a task."""
    return Key(task.operation.resource.name, task.key)


def _is_lost(change: Change, entry: Entry | None, rows: list[HistoryRow]) -> bool:
    """Return whether nobody has worked on an asset since its outcome was recorded, and then lost."""
    begun = change.before
    if begun is None or change.after is None:
        return False
    if entry:
        return entry.revision == begun.revision
    later = [row for row in rows if row.at >= change.after.began_at]
    return not any(row.revision != begun.revision for row in later)


def _waiting_line(running: Mapping[str, Entry]) -> str:
    """Return the line about the leases that a task waits for."""
    first = next(iter(running.values()))
    until = time_of(max(entry.lease_until for entry in running.values()))
    return (
        f"waiting for {listing([*map(printable, running)])}: {printable(first.by)} has worked since"
        f" {first.began_at}, at most until {until}"
    )


def _ending(intent: Intent, result: Result) -> Change:
    """Return the change that ends an attempt, with its history row."""
    begun, original = intent.change, intent.task.entry
    state = AFTER.get((result.outcome, result.asset is not None), UNKNOWN)
    entry, after = begun.after, original
    if state and entry:
        asset = entry.asset if result.asset is None else without_placeholders(result.asset)
        after = entry._replace(state=state, asset=asset, changed_at="")
    if intent.task.operation.removes and state == DONE:
        after = None
    row = HistoryRow(
        from_state=state_of(original),
        to_state=state_of(after),
        run=entry.run if entry else "",
        outcome=result.outcome,
        status=result.status,
        message=str(result.msg),
        seconds=round(time.monotonic() - intent.began, 3),
    )
    return stamped(Change(Write.OUTCOME, begun.key, entry, after, row))
