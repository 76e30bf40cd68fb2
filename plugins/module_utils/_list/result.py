# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The result of a list: a result of the same shape for each item, and the totals."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Iterable

from .._errors import ACCEPTED, NOT_SENT, OUTCOMES, UNKNOWN, Message, gravest, listing, quantity
from .._result import Json, Result
from .._secrets import for_message, printable
from .._task.specs import ModuleSpec

_TOO_LARGE = (
    "ansible-runner and AWX drop a result of more than 700,000"
    " characters, and this one is near that or above. Set"
    " results to problems, and {} to the fields that you need, such as [id]."
)
_RESULTS_SAY = "See results for the known effect of each, and the next step."
_MOST_WARNINGS = 20
_MOST_PROBLEMS = 100  # where the result would be too large with all of them
_MOST_NOT_LISTED = 1_000  # names, of some tens of characters each
_LARGE = 680_000  # characters; the invocation comes on top
_EFFECTS = {
    NOT_SENT: "not sent",
    UNKNOWN: "in doubt",
    ACCEPTED: "accepted without a usable answer",
}
_PLANS = ("create", "update", "keep", "differs", "in_doubt")
# Their lines in a plan tell what the warning tells, in fewer words.
_TELLING_PLANS = ("differs", "in_doubt", "update")


class ListResult:
    """Collects the results of the items."""

    def __init__(
        self, spec: ModuleSpec, labels: list[str], fields: list[str] | None, no_log: bool = False
    ) -> None:
        """`fields`: dotted names of the envelope fields to return, None for all."""
        self.warnings: list[str] = []  # about all items together
        # Names that are recorded but not listed, None if the ledger was not read.
        self.not_listed: list[str] | None = None
        self._spec = spec
        self._labels = labels
        self._fields = fields
        self._noun = spec.sent.operation.noun
        self._label = spec.sent.operation.label
        self._items = [Result()] * len(labels)
        # In what looks like a loop, ansible-core 2.19 hides only items that are marked themselves.
        self._hidden = {"_ansible_no_log": True} if no_log else {}
        # By the text, and whether it is about one asset.
        self._item_warnings: dict[tuple[Message, bool], list[str]] = {}
        self.total = len(labels)
        self.added = 0
        self.failed = 0
        self._reason = ""  # why the list stopped

    def add(self, number: int, result: Result) -> None:
        """Add the result of one item."""
        label = self._labels[number]
        for warning in result.warnings:
            if warning.asset and result.plan in _TELLING_PLANS:
                continue
            same = warning._replace(asset="", since="")
            labels = self._item_warnings.setdefault((same, bool(warning.asset)), [])
            labels.append(label)
        self._items[number] = result.but(
            item=label,
            msg=_message_of(result),
            warnings=(),
            request_attempts=result.request_attempts or 0,
            more=self._hidden,
        )
        self.added += 1
        self.failed += result.failed

    def skip(self, number: int, reason: str) -> None:
        """Add an item that was not started; it keeps its plan."""
        self._reason = reason
        before = self._items[number]
        asset = self._label(self._labels[number])
        msg = Message(f"not started: {reason}", asset)
        result = before.but(outcome=NOT_SENT, changed=False, skipped=True, msg=msg)
        self.add(number, result)

    def changed(self) -> list[int]:
        """Return the numbers of the items that were changed, or would be."""
        return [number for number, item in enumerate(self._items) if item.changed]

    def done(self, next_step: str = _RESULTS_SAY) -> Result:
        """Return the result of the list for the screen and the report, with whole assets.

        `next_step`: where the user finds the details of each item.
        """
        items = self._items
        counts = self._counts()
        diffs = [item.diff for item in items if item.diff is not None]
        changing = [_of_changes(diff) for diff in diffs if diff["before"] != diff["after"]]
        is_failed = bool(counts["failed"] or counts["not_begun"])
        return Result(
            changed=counts["changed"] > 0,
            outcome=gravest(NOT_SENT, *{item.outcome for item in items}),
            counts=counts,
            results=tuple(item.but(diff=None) for item in items),
            diff=changing if diffs else None,
            not_listed=None if self.not_listed is None else tuple(self.not_listed),
            failed=is_failed,
            msg=Message(self._msg(counts, next_step) if is_failed else ""),
            warnings=(*self.warnings, *self._same_ids(), *self._some_warnings()),
        )

    def returned(self, result: Result, which: str) -> Result:
        """Return the result of the list as its task returns it, with facts.

        `result`: from `done`; `which`: the items to return in `results`, `all` or `problems`. If
        the problems alone are too large, only the first ones are returned.
        """
        items = [self._returned(item) for item in result.results or ()]
        facts = {item.item: item.asset for item in items if _is_known(item)}
        shown = items if which == "all" else [item for item in items if _is_problem(item)]
        result = result.but(results=tuple(shown), ansible_facts={self._spec.name: facts})
        if result.not_listed:
            result = result.but(not_listed=result.not_listed[:_MOST_NOT_LISTED])
        if which == "problems" and _is_large(result):
            begun = [item for item in shown if not item.skipped]
            result = result.but(results=tuple(begun[:_MOST_PROBLEMS]))
        if _is_large(result):
            advice = _TOO_LARGE.format(self._spec.named("asset_fields"))
            result = result.but(warnings=(*result.warnings, advice))
        return result

    def _returned(self, item: Result) -> Result:
        """Return an item with the requested fields of its asset."""
        return item if item.asset is None else item.but(asset=picked(item.asset, self._fields))

    def _counts(self) -> dict[str, int]:
        outcomes = Counter(item.outcome for item in self._items)
        plans = Counter(item.plan for item in self._items)
        counts = {outcome: outcomes[outcome] for outcome in OUTCOMES}
        counts["changed"] = sum(item.changed for item in self._items)
        counts["failed"] = sum(item.failed for item in self._items)
        counts["not_begun"] = sum(item.skipped for item in self._items)
        counts.update({plan: plans[plan] for plan in _PLANS if plans[plan]})
        return counts if self.not_listed is None else dict(counts, not_listed=len(self.not_listed))

    def _msg(self, counts: dict[str, int], next_step: str) -> str:
        """Return the failures, the items that were not started, and the next step."""
        done = self._spec.sent.operation.done
        parts = []
        failed = [item for item in self._items if item.failed]
        if failed:
            of_all = f"{len(failed):,} of {self.total:,} {self._noun}s failed"
            names = listing([printable(str(item.item)) for item in failed])
            parts.append(f"{of_all} ({_known_effects(failed)}): {names}.")
        if counts["not_begun"]:
            changed = f"{_were(counts['changed'])} {done}, " if counts["changed"] else ""
            parts.append(f"{changed}{_were(counts['not_begun'])} not started: {self._reason}.")
        return " ".join([*parts, next_step])

    def _same_ids(self) -> list[str]:
        """Return a warning for each id that several assets have."""
        named: dict[str, list[str]] = {}
        for item in self._items:
            if item.asset and item.asset.get("id"):
                named.setdefault(str(item.asset["id"]), []).append(str(item.item))
        warnings = []
        for found, names in named.items():
            if len(names) > 1:
                printed = listing([*map(printable, names)])
                same = f"{self._noun}s {printed} have the same id, {for_message(found)}"
                warnings.append(f"{same}: look up which of them exist.")
        return warnings[:_MOST_WARNINGS]

    def _some_warnings(self) -> list[str]:
        """Return the warnings about items, the same one about several of them once."""
        unique = []
        for (said, is_of_each), (name, *others) in self._item_warnings.items():
            printed = listing([*map(printable, others)])
            same = f" (the same is true of {printed})" if others else ""
            unique.append(f"{self._label(name)}{same}: {said}" if is_of_each else str(said))
        more = len(unique) - _MOST_WARNINGS
        if more > 0:
            told = f"And {quantity(more, 'more warning')}; results has them."
            return [*unique[:_MOST_WARNINGS], told]
        return unique


def _message_of(result: Result) -> Message:
    """Return the message of an item, made of its warnings if it has none of its own."""
    if result.msg.text or not result.warnings:
        return result.msg
    assets = [warning.asset for warning in result.warnings if warning.asset]
    text = " ".join(warning.text for warning in result.warnings)
    return Message(text, assets[0] if assets else "")


def _were(count: int) -> str:
    return f"{count:,} {'was' if count == 1 else 'were'}"


def _known_effects(failed: list[Result]) -> str:
    """Return how many failed items have each known effect, in words."""
    graver_last = sorted(failed, key=lambda item: OUTCOMES.index(item.outcome))
    found = Counter(_known_effect(item) for item in graver_last)
    return ", ".join(f"{count:,} {effect}" for effect, count in found.items())


def _known_effect(item: Result) -> str:
    if item.outcome == ACCEPTED and item.asset is not None:
        return "accepted but not recorded"
    return _EFFECTS.get(item.outcome, item.outcome)


def _is_known(item: Result) -> bool:
    """Whether the service has the asset, or would have it, and some fields are requested."""
    return bool(item.asset) and item.outcome in (ACCEPTED, NOT_SENT)


def _is_problem(item: Result) -> bool:
    """Whether somebody has to look at an item."""
    return item.failed or bool(item.differs) or item.skipped or item.outcome == UNKNOWN


def _is_large(result: Result) -> bool:
    return len(json.dumps(result.as_ansible())) >= _LARGE


def _of_changes(diff: Json) -> Json:
    """Return a diff with only the fields and attributes that change."""
    before, after = _differing(diff["before"], diff["after"])
    old = before.get("attributes")
    new = after.get("attributes")
    if isinstance(old, dict) and isinstance(new, dict):
        before["attributes"], after["attributes"] = _differing(old, new)
    return {**diff, "before": before, "after": after}


def _differing(before: Json, after: Json) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the members of two dicts that differ."""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    old = {name: before[name] for name in names if name in before}
    new = {name: after[name] for name in names if name in after}
    return old, new


def picked(asset: Json, fields: Iterable[str] | None, above: str = "") -> Json:
    """Return the given fields of an envelope, all for None; missing fields are left out.

    `above`: the start of the dotted names of its fields, where it is a part of an envelope.
    """
    if fields is None:
        return asset
    some: dict[str, Any] = {}
    for name, value in asset.items():
        place = f"{above}{name}"
        if place in fields:
            some[name] = value
        elif isinstance(value, dict) and any(field.startswith(f"{place}.") for field in fields):
            some[name] = picked(value, fields, f"{place}.")
    return some
