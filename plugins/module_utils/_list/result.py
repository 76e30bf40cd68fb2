# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The result of a list: a result of the same shape for each item, and the totals."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any, Iterable

from .._errors import (
    ACCEPTED,
    NOT_SENT,
    OUTCOMES,
    REJECTED,
    UNKNOWN,
    Message,
    listing,
    quantity,
    sentence,
)
from .._result import Json, Result
from .._secrets import printable
from .._task.specs import ModuleSpec
from .._values import ABSENT, Params, value_at

_TOO_LARGE = (
    "ansible-runner and AWX drop a result of more than 700,000 characters, and this one is near"
    " that or above. Set results to problems, and {} to the fields that you need, such as [id]."
)
_RESULTS_SAY = "See results for the known effect of each, and the next step."
_MOST_WARNINGS = 20
_LARGE = 680_000  # characters
# The outcome of a list is the one that needs a person most.
_BY_NEED = (UNKNOWN, REJECTED, ACCEPTED, NOT_SENT)
_DIFFERS = "differs"
_EFFECTS = {
    NOT_SENT: "not sent",
    REJECTED: "rejected",
    UNKNOWN: "in doubt",
    ACCEPTED: "accepted without a usable answer or not recorded",
}


@dataclass
class ListResult:
    """The results of the items, by name or id, in the order of the list.

    Of those that were not started only `skipped` is set.
    """

    spec: ModuleSpec
    params: Params  # of the task
    results: dict[str, Result]
    no_log: bool = False
    reason: str = ""  # why the list stopped
    # Names that are recorded but not listed, None if the ledger was not read.
    not_listed: list[str] | None = None
    failure: str = ""  # why the list fails whatever its items did

    def done(self, next_step: str = _RESULTS_SAY) -> Result:
        """Return the result of the list for the screen and the report, with whole assets.

        `next_step`: where the user finds the details of each item.
        """
        items = tuple(self._item(label, result) for label, result in self.results.items())
        counts = self._counts(items)
        diffs = [result.diff for result in self.results.values() if result.diff is not None]
        is_failed = bool(counts["failed"] or counts["not_begun"] or self.failure)
        return Result(
            changed=counts["changed"] > 0,
            outcome=min((item.outcome for item in items), key=_BY_NEED.index, default=NOT_SENT),
            counts=counts,
            results=items,
            diff=[diff for diff in diffs if diff["before"] != diff["after"]] if diffs else None,
            not_listed=None if self.not_listed is None else tuple(self.not_listed),
            failed=is_failed,
            msg=Message(self._msg(items, counts, next_step) if is_failed else ""),
            warnings=tuple(self._warnings()),
        )

    def returned(self, result: Result) -> Result:
        """Return the result of the list, from `done`, as its task returns it, with facts."""
        spec, params = self.spec, self.params
        items = [
            item.but(asset=item.asset and picked(item.asset, params["asset_fields"]))
            for item in result.results or ()
        ]
        facts = {item.item: item.asset for item in items if item.asset}
        shown = [item for item in items if params["results"] == "all" or _is_problem(item)]
        result = result.but(results=tuple(shown), ansible_facts={spec.name: facts})
        if len(json.dumps(result.as_ansible())) >= _LARGE:
            advice = _TOO_LARGE.format(spec.named("asset_fields"))
            result = result.but(warnings=(*result.warnings, advice))
        return result

    def _item(self, label: str, result: Result) -> Result:
        """Return the result of one item as the list has it."""
        msg = _message_of(result)
        if result.skipped:
            msg = Message(f"not started: {self.reason}", self.spec.sent.resource.label(label))
        return result.but(
            item=label,
            msg=msg,
            warnings=(),
            request_attempts=result.request_attempts or 0,
            diff=None,
            # In what looks like a loop, ansible-core 2.19 hides only items that are marked.
            more={"_ansible_no_log": True} if self.no_log else {},
        )

    def _counts(self, items: tuple[Result, ...]) -> dict[str, int]:
        outcomes = Counter(item.outcome for item in items)
        counts = {
            **{outcome: outcomes[outcome] for outcome in OUTCOMES},
            "changed": sum(item.changed for item in items),
            "failed": sum(item.failed for item in items),
            "not_begun": sum(item.skipped for item in items),
            **Counter(item.plan for item in items if item.plan),
        }
        return counts if self.not_listed is None else dict(counts, not_listed=len(self.not_listed))

    def _msg(self, items: tuple[Result, ...], counts: dict[str, int], next_step: str) -> str:
        """Return the failures, the items that were not started, and the next step."""
        parts = [sentence(self.failure)] if self.failure else []
        failed = [item for item in items if item.failed]
        if failed:
            of_all = f"{len(failed):,} of {len(items):,} {self.spec.sent.resource.noun}s failed"
            found = Counter(_DIFFERS if it.differs else _EFFECTS[it.outcome] for it in failed)
            words = [_DIFFERS, *_EFFECTS.values()]
            effects = ", ".join(f"{found[word]:,} {word}" for word in words if found[word])
            if not self.spec.sent.creates:  # an update is never in doubt
                effects = effects.replace(_EFFECTS[UNKNOWN], UNKNOWN)
            names = listing([printable(str(item.item)) for item in failed])
            parts.append(f"{of_all} ({effects}): {names}.")
        if counts["not_begun"]:
            parts.append(f"{counts['not_begun']:,} not started: {self.reason}.")
        return " ".join([*parts, next_step])

    def _warnings(self) -> list[str]:
        """Return the first warnings, each once; the lines of a plan tell those of its assets."""
        unique = dict.fromkeys(
            str(warning)
            for result in self.results.values()
            for warning in result.warnings
            if not (warning.asset and result.plan)
        )
        more = len(unique) - _MOST_WARNINGS
        told = [f"And {quantity(more, 'more warning')}; results has them."] if more > 0 else []
        return [*unique][:_MOST_WARNINGS] + told


def _message_of(result: Result) -> Message:
    """Return the message of an item, made of its warnings if it has none of its own."""
    said = [warning for warning in result.warnings if warning.asset]
    if result.msg.text or not said:
        return result.msg
    return Message(" ".join(warning.text for warning in said), said[0].asset)


def _is_problem(item: Result) -> bool:
    """Whether somebody has to look at an item."""
    return item.failed or bool(item.differs) or item.skipped or item.outcome == UNKNOWN


def picked(asset: Json, fields: Iterable[str] | None) -> Json:
    """Return the fields of an envelope with these dotted names, all for None; some may be missing."""
    if fields is None:
        return asset
    some: dict[str, Any] = {}
    for field in fields:
        *above, last = field.split(".")
        value = value_at(asset, (*above, last))
        if value is not ABSENT:
            holder = some
            for key in above:
                holder = holder.setdefault(key, {})
            holder[last] = value
    return some
