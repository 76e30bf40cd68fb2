# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a list adds to the way of a task: limits, progress, and what it does with doubts."""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass
from typing import Callable, Mapping

from .._errors import UNKNOWN, InvalidInput
from .._resources.planning import ADOPT, REFUSE, SEND, Task
from .._result import Result
from .._task.journal import NoLedger
from .._task.options import settings_from
from .._task.specs import ModuleSpec
from .._task.task import Context, Limits, carry_out_all
from .._task.validation import Options
from .._values import Params
from .items import prepare_all, require_approved, require_plans
from .result import ListResult

_SPARE_FILES = 12  # descriptors, such as those of a ledger
# Shows the progress: how many items there are, how many had nothing to send, the results of the
# others so far, how many requests are in flight, and whether the list only waits for these.
Progress = Callable[[int, int, "list[Result]", int, bool], None]


def send_list(options: Options, context: Context, open_ledger: Callable[[str], NoLedger]) -> Result:
    """Return the result of a list; raise ServicesError before anything is sent."""
    result = carry_out_list(options, context, open_ledger)
    return result.returned(result.done())


def carry_out_list(
    options: Options,
    context: Context,
    open_ledger: Callable[[str], NoLedger],
    approved: Mapping[str, Result] | None = None,
    progress: Progress = lambda *_numbers: None,
) -> ListResult:
    """Return the results of a list; `approved`: the rows with the bodies that may be sent, by name or
    id, None for any.
    """
    spec, params = options.spec, options.params
    settings = settings_from(options.valid(), context.check_mode)
    ledger = open_ledger(settings.base_url)
    tasks = ledger.plan_all(prepare_all(options, settings), context.check_mode)
    require_plans(spec, tasks)
    refused = ledger.gone_back(tasks)
    if refused and not context.check_mode:
        raise InvalidInput("ledger", refused)
    if approved is not None:
        require_approved(tasks, approved)
    doubtful = [task for task in tasks if task.plan.action == REFUSE]
    reason = ""
    if doubtful and params["in_doubt"] == "stop":
        reason = f"{len(doubtful):,} of the list in doubt ({spec.named('in_doubt')}: stop)"
    limits = Limits(
        most_connections(min(params["concurrency"], len(tasks))),
        params["retry_max_delay"],
        _Watch(spec, params, tasks, progress),
        1 if approved is not None else Limits.rounds,
        reason,
    )
    done = carry_out_all(tasks, context, ledger, limits)
    if params["in_doubt"] == "skip":
        for key, result in done.results.items():
            if result.plan in ("in_doubt", "in_flight"):
                done.results[key] = result.but(failed=False, warnings=(result.msg,))
    not_listed = ledger.not_listed(tasks) if context.check_mode else None
    return ListResult(
        spec, params, done.results, context.no_log, done.reason, not_listed, failure=refused
    )


@dataclass
class _Watch:
    """Shows the progress of a list, and looks at its limits."""

    spec: ModuleSpec
    params: Params
    tasks: list[Task]
    progress: Progress
    _unknown: int = 0
    _failed: int = 0  # one that differs fails alone
    _counted: int = 0  # of the results so far

    def __post_init__(self) -> None:
        actions = [task.plan.action for task in self.tasks]
        is_doubt = self.params["in_doubt"] != "skip"
        self._failed = actions.count(REFUSE) if is_doubt else 0
        self._settled = len(actions) - actions.count(SEND) - actions.count(ADOPT)

    def __call__(self, ended: list[Result], in_flight: int, is_ending: bool) -> str:
        """Return the limit that is reached, '' if none."""
        self.progress(len(self.tasks), self._settled, ended, in_flight, is_ending)
        new = ended[self._counted :]
        self._counted += len(new)
        self._unknown += sum(result.outcome == UNKNOWN for result in new)
        self._failed += sum(result.failed for result in new)
        reached = {
            "max_unknown": (self._unknown, "in doubt"),
            "max_failures": (self._failed, "failed"),
        }
        for option, (count, what) in reached.items():
            most = self.params[option]
            if 0 < most <= count:
                return f"the list stopped after {most} {what} ({self.spec.named(option)}: {most})"
        return ""


def most_connections(wanted: int) -> int:
    """Return how many of the wanted connections there are file descriptors for."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    free = limit - len(os.listdir("/dev/fd")) - _SPARE_FILES
    return wanted if limit == resource.RLIM_INFINITY else max(1, min(wanted, free))
