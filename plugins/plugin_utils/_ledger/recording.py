# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs tasks under the ledger: wait for leases, plan, record the intent, record the outcome."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import count
from typing import Callable, Mapping, Sequence

from ...module_utils._call.attempt import MARGIN, Clocks, Lease, read_clocks
from ...module_utils._errors import (
    ACCEPTED,
    NOT_SENT,
    UNKNOWN,
    InvalidInput,
    LedgerError,
    Message,
    ServicesError,
    listing,
)
from ...module_utils._resources.planning import ADOPT, KEEP, SEND, Plan, Task
from ...module_utils._result import Result
from ...module_utils._secrets import Secrets, printable, without_placeholders
from ...module_utils._task.journal import NoLedger
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


class Recording(NoLedger):
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
        self.clocks: Callable[[], Clocks] = read_clocks
        self.patience = ledger.database.tried_for
        self.most = ledger.database.most_written
        # The last row when the tasks were first planned; of a run, the last beginning or edit.
        self.serial: Serial | None = None
        # The outcomes of requests that may have had an effect.
        self._recorded: dict[Key, Change] = {}
        # When changes were first tried, by revision: a lease may have begun then.
        self._first_tries: dict[int, Clocks] = {}
        self._secrets = secrets
        self._run = run
        self._approved_rows = approved_rows
        self._show = show
        self._pause = pause

    def plan_all(self, tasks: list[Task], check_mode: bool = False) -> list[Task]:
        """Wait for running leases, unless in check mode, and return the tasks with their plans."""
        keys = [*map(key_of, tasks)]
        for look in count():
            found = self.ledger.find(keys, with_rows=check_mode)
            running = {key.name: entry for key, entry in found.entries.items() if is_running(entry)}
            if check_mode or not running or self.ledger.has_gone_back:
                break
            self.ledger.start_leases()
            if look == _SILENT:
                self._show(_waiting_line(running))
            self._pause(_LOOK)
        if self.serial is None:
            self.serial = found.serial if check_mode else found.begun
        planned = {key: self._plan(task, key, found) for key, task in zip(keys, tasks)}
        adopted = {
            key: task.plan.adopted for key, task in planned.items() if task.plan.action == ADOPT
        }
        for key, problem in taken_ids(self.ledger, adopted).items():
            planned[key] = planned[key].refused(InvalidInput("id", printable(problem)))
        return [*planned.values()]

    def _plan(self, task: Task, key: Key, found: Snapshot) -> Task:
        """Return a task with its plan, or with the error that forbids it."""
        entry = found.entries.get(key)
        task = replace(task, entry=entry, last_row=found.last_rows.get(key, 0))
        creates, identifier = task.operation.creates, task.id
        if creates and identifier is not None and state_of(entry) != DONE:
            return self._adopting(task)
        if entry is None and task.operation.removes and identifier is None:
            return replace(task, plan=Plan(KEEP, {}, {}))
        if entry and is_running(entry):  # in check mode, which waits for nobody
            text = _IN_FLIGHT.format(
                printable(entry.by), entry.began_at, time_of(entry.lease_until)
            )
            msg = Message(text, task.asset)
            return task.refused(ServicesError(msg, UNKNOWN, changed=False, plan="in_flight"))
        if entry and is_in_doubt(key, entry):
            state = ACCEPTED if entry.state == ACCEPTED else UNKNOWN
            text = _FOUND[state].format(entry.began_at)
            msg = self._in_doubt(Message(text, task.asset, since=entry.began_at), state)
            # This task sent nothing.
            error = ServicesError(msg, state, changed=False, plan="in_doubt")
            return task.refused(error)
        return task.planned()

    def gone_back(self, tasks: list[Task]) -> str:
        """Return why none of these planned tasks may be sent, '' if they may."""
        is_sent = any(task.plan.action == SEND for task in tasks)
        return self.ledger.gone_back() if is_sent else ""

    def _adopting(self, task: Task) -> Task:
        """Return the task of an asset that exists, with the plan to record it."""
        body = {**task.body, "id": task.id}
        present = {"state": "present", "asset": body, "changed_at": None}
        try:
            adopted = entry_after(key_of(task), task.entry, present, self._secrets)
        except InvalidInput as error:
            return task.refused(InvalidInput("id", error.problem))
        known = adopted.asset if adopted else {}
        return replace(task, plan=Plan(ADOPT, body, known, adopted=adopted))

    def beginning(self, task: Task) -> Change:
        """Return the change that begins a task, or records an asset that exists."""
        approved = self._approved_rows
        limit = NO_LIMIT if approved is None else approved.get(task.key, 0)
        key, before = key_of(task), task.entry
        if task.plan.action == ADOPT:
            edit = noted(Change(Write.ADOPT, key, before, task.plan.adopted), self._run, "by id")
            return stamped(replace(edit, approved_row=limit))
        body = self._secrets.recordable(task.plan.body)
        intent = Entry(INTENT, body, before.asset if before else {}, run=self._run)
        row = HistoryRow(state_of(before), INTENT, run=self._run)
        seconds = round(task.settings.timeout + MARGIN)
        begun = Change(Write.BEGIN, key, before, intent, row, 0, seconds, limit)
        return stamped(begun)

    def outcome(self, begun: Change, task: Task, result: Result) -> Change:
        """Return the change that ends what `begun` began, with its history row."""
        original = begun.before
        state = AFTER.get((result.outcome, result.asset is not None), UNKNOWN)
        entry, after = begun.after, original
        if state and entry:
            asset = entry.asset if result.asset is None else without_placeholders(result.asset)
            after = entry._replace(state=state, asset=asset, changed_at="")
        if task.operation.removes and state == DONE:
            after = None
        row = HistoryRow(
            from_state=state_of(original),
            to_state=state_of(after),
            run=self._run,
            outcome=result.outcome,
            status=result.status,
            message=str(result.msg),
            seconds=result.seconds,
        )
        return stamped(Change(Write.OUTCOME, begun.key, entry, after, row))

    def write(self, changes: Sequence[Change]) -> list[Lease | None]:
        """Write changes in one transaction; return a lease for each that had its effect."""
        now = self.clocks()  # before the statements are handed over, for the first time
        since = [self._first_tries.setdefault(change.revision, now) for change in changes]
        effects = self.ledger.write([*changes])
        begun = [
            change for change, done in zip(changes, effects) if done and change.kind is Write.BEGIN
        ]
        if begun and self.ledger.has_gone_back:
            self.ledger.write([self._withdrawn(change) for change in begun])
            raise LedgerError(self.ledger.gone_back())
        return [
            Lease(change.lease_seconds, first, self.clocks) if effect else None
            for change, first, effect in zip(changes, since, effects)
        ]

    def _withdrawn(self, begun: Change) -> Change:
        """Return the change that takes a beginning back, for which nothing was sent."""
        before = begun.before
        row = HistoryRow(INTENT, state_of(before), run=self._run, outcome=NOT_SENT)
        return stamped(Change(Write.OUTCOME, begun.key, begun.after, before, row))

    def left(self, written: Change, task: Task) -> Task:
        """Return a task whose attempt has ended, as it begins again."""
        return replace(task, entry=written.after)

    def finished(self, written: Change, task: Task, result: Result, had_effect: bool) -> Result:
        """Return the result of a task whose outcome is written, with the next step after a doubt.

        An accepted or unknown outcome whose entry is gone is written anew.
        """
        result = result.but(began=written.row and written.row.began)
        may_exist = result.outcome in (ACCEPTED, UNKNOWN) and written.after is not None
        if not may_exist:
            return self._with_next_step(result, task, state_of(written.after))
        error = LedgerError("another task changed its entry meanwhile")
        is_recorded = had_effect
        try:
            had_effect = had_effect or self._was_changed_since(written)
            is_recorded = had_effect or all(self.ledger.write([replace(written, before=None)]))
        except LedgerError as problem:
            error = problem
        if not is_recorded:
            return self.not_recorded(written, task, result, error)
        self._recorded[written.key] = written
        if not had_effect:
            result = result.but(warnings=(*result.warnings, self._why_gone(task)))
        return self._with_next_step(result, task, state_of(written.after))

    def not_begun(self, task: Task, known: Result, error: LedgerError) -> Result:
        """Return the result of a task whose beginning could not be written."""
        said = Message(f"ledger: {error.problem}. Nothing was sent.", task.asset)
        msg = said if known.skipped else known.msg
        text = "If the ledger lists it in doubt, it may be settled as absent."
        return known.but(skipped=False, failed=True, msg=msg.then(text))

    def not_recorded(
        self, unwritten: Change, task: Task, result: Result, error: LedgerError
    ) -> Result:
        """Return the result of a task whose outcome could not be written."""
        text = (
            f"The outcome is {result.outcome}, but it could not be recorded: {error.problem}."
            " Before you run it again, settle its entry with"
            " infrastructure.services.ledger_entry."
        )
        msg = result.msg._replace(asset=task.asset).then(text)
        began = unwritten.row and unwritten.row.began  # a report gives it back
        changed = result.outcome == ACCEPTED
        return result.but(failed=True, changed=changed, msg=msg, began=began)

    def left_behind(self, begun: Change, task: Task, result: Result) -> Result:
        """Return the result of a task that ends before its attempt does."""
        return self._with_next_step(result.but(began=begun.revision), task, result.outcome)

    def recover(self) -> str:
        """Record anew what the ledger has lost since; return a warning about it, '' for nothing.

        A server that took over, or a file that was copied over, may lack an outcome, or the whole
        entry. Raises LedgerError for what somebody else has changed since, which is left.
        """
        recorded = self._recorded
        if not recorded:
            return ""
        self.ledger.start_leases()  # a write, which a server that lags behind refuses
        entries, rows = self.ledger.find(recorded).entries, self.ledger.history(recorded)
        restored, missing = [], []
        for key, change in recorded.items():
            entry = entries.get(key)
            if change.revision in [row.revision for row in rows[key]]:
                continue
            if _is_lost(change, entry, rows[key]) and (
                all(self.ledger.write([change]))
                or all(self.ledger.write([replace(change, before=None)]))
            ):
                restored.append(printable(key.name))
            else:
                ids = [id_of(each) or "without an id" for each in (change.after, entry) if each]
                missing.append(printable(f"{key.name} ({', now '.join(ids)})"))
        if missing:
            raise LedgerError(
                f"{self.ledger.where} lacks what this list had recorded, and somebody else has"
                f" changed these entries since, so they were left: {listing(missing)}. Compare them"
                " with the service"
            )
        if not restored:
            return ""
        return (
            f"{self.ledger.where} lacked what this list had recorded, as after a failover that loses"
            f" rows, so it was recorded anew: {listing(restored)}"
        )

    def _was_changed_since(self, written: Change) -> bool:
        """Return whether somebody has edited the entry of an outcome that was written before."""
        revisions = [row.revision for row in self.ledger.rows_of(written.key)]
        return written.revision in revisions[:-1]

    def _why_gone(self, task: Task) -> Message:
        """Return a warning about an entry that was gone when its request ended."""
        key = key_of(task)
        try:
            rows = self.ledger.rows_of(key)
        except LedgerError:  # the outcome is recorded
            rows = []
        edits = [row for row in rows[-2:-1] if row.to_state == ABSENT and not row.outcome]
        why = "the ledger went back in time, as after a restored backup"
        if edits:
            why = f"{printable(edits[0].by)} settled it as absent at {edits[0].at}"
        return Message(
            f"its entry was gone when the request ended, and was recorded anew: {why}.", task.asset
        )

    def _with_next_step(self, result: Result, task: Task, state: str) -> Result:
        """Return the result, with how to settle a creation whose entry is now in this state."""
        if not task.operation.creates or state not in _NEXT or not result.failed:
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
