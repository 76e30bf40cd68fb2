# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a ledger does for tasks, without one; `_ledger/recording` is the other one."""

from __future__ import annotations

from typing import Any, Sequence

from .._call.attempt import NO_END, Lease
from .._errors import LedgerError
from .._resources.planning import Task
from .._result import Result


class NoLedger:
    """Records nothing. A change, of the ledger, is opaque here; None if there is nothing to write."""

    most = 1  # changes in one write
    patience = 0.0  # seconds for which a write is tried again while the ledger is away

    def plan_all(self, tasks: list[Task], check_mode: bool = False) -> list[Task]:
        """Wait for other tasks, unless in check mode, and return these with their plans."""
        return [task.planned() for task in tasks]

    def gone_back(self, tasks: list[Task]) -> str:
        """Return why none of these planned tasks may be sent, '' if they may."""
        return ""

    def beginning(self, task: Task) -> Any:
        """Return the change that begins a task, or records an asset that exists."""
        return None

    def outcome(self, begun: Any, task: Task, result: Result) -> Any:
        """Return the change that ends what `begun` began."""
        return None

    def write(self, changes: Sequence[Any]) -> list[Lease | None]:
        """Write changes in one transaction; return a lease for each that had its effect.

        Raises LedgerAway if it is not known whether they were written, or LedgerError.
        """
        return [NO_END for _change in changes]

    def left(self, written: Any, task: Task) -> Task:
        """Return a task whose attempt has ended, as it begins again."""
        return task

    def finished(self, written: Any, task: Task, result: Result, had_effect: bool) -> Result:
        """Return the result of a task whose outcome is written, with the next step after a doubt."""
        return result

    def not_begun(self, task: Task, known: Result, error: LedgerError) -> Result:
        """Return the result of a task whose beginning could not be written.

        `known`: of its attempts so far.
        """
        return known

    def not_recorded(
        self, unwritten: Any, task: Task, result: Result, error: LedgerError
    ) -> Result:
        """Return the result of a task whose outcome could not be written."""
        return result

    def left_behind(self, begun: Any, task: Task, result: Result) -> Result:
        """Return the result of a task that ends before its attempt does."""
        return result

    def not_listed(self, tasks: list[Task]) -> list[str] | None:
        """Return the names that are recorded but not in the list, None without a ledger."""
        return None
