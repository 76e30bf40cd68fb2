# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The assets of a list and the runs of a report: the source of the screen and of all files."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Iterable, Mapping, TypedDict

from ...module_utils._call.operation import Operation
from ...module_utils._errors import ACCEPTED, NOT_SENT, REJECTED, UNKNOWN
from ...module_utils._result import REPORT, Result, keys

IN_DOUBT, DIFFERS = "in doubt", "differs"
NOT_STARTED = "not begun"  # the word that programs read; people read that of result_word
NOT_LISTED, UNCHANGED = "not listed", "unchanged"
# The states of a run, in check mode and otherwise.
PLANNED, ENDED = "planned", "ended"
_PLANS = {
    "create": "to create",
    "update": "to update",
    "differs": DIFFERS,
    "in_doubt": IN_DOUBT,
    "keep": UNCHANGED,
}
_IN_PLAN = ("to create", "to update", DIFFERS, IN_DOUBT, NOT_LISTED, UNCHANGED)
_AT_END = (UNCHANGED, IN_DOUBT, "rejected", DIFFERS, "not sent", NOT_STARTED)


class Field(TypedDict, total=False):
    """A field of an asset, with its known values."""

    name: str  # dotted, such as attributes.cpu
    old: object
    new: object
    value: object
    known: object
    now: object


@dataclass(frozen=True)
class Asset:
    """An asset (docs/report.schema.json); an unknown field is empty."""

    resource: str
    name: str
    result: str  # how it ended, or its plan, in words
    outcome: str
    changed: bool
    failed: bool
    skipped: bool | None = None
    id: object = None
    address: object = None
    status: int | None = None
    request_attempts: int | None = None
    begun_after: float | None = None  # seconds since the list began
    seconds: float | None = None
    # When each began, and its seconds.
    waits: Iterable[tuple[float, float]] = ()
    trace_id: str = ""
    msg: str = ""
    cause: str = ""  # `msg` without the name of the asset and the command
    command: str = ""
    since: str = ""
    plan: str = ""
    differs: Iterable[str] = ()
    lost: Iterable[Field] = ()
    body: Mapping[str, Any] | None = None
    known: Mapping[str, Any] | None = None
    changes: Iterable[Field] = ()
    unsent: Iterable[Field] = ()

    def as_json(self) -> dict[str, object]:
        """Return the fields that are known."""
        return {name: value for name, value in vars(self).items() if value not in _EMPTY}

    @property
    def is_problem(self) -> bool:
        """Whether somebody has to look at it; an asset that was not started is never the cause."""
        if self.skipped:
            return False
        is_told = self.result in (DIFFERS, IN_DOUBT)
        return self.failed or is_told or bool(self.lost)


_EMPTY: tuple[object, ...] = (None, "", (), [])


@dataclass(frozen=True)
class Run:
    """The lists of a run of Ansible, or of its plan (docs/report.schema.json)."""

    run: str
    state: str
    service: str
    ledger: str | None
    by: str
    began_at: str
    counts: dict[str, dict[str, int]]  # by resource
    assets: list[Asset]
    ended_at: str = ""
    ledger_id: str | None = None
    warnings: list[str] | tuple[()] = ()
    history_rows: int | None = None
    history_end: str | None = None  # identifies the last of these rows
    interrupted: str | None = None  # why the run ended before its lists did

    def as_json(self) -> dict[str, object]:
        """Return the run as the JSON file has it."""
        run = dict(vars(self), assets=[asset.as_json() for asset in self.assets])
        for name in ("history_rows", "history_end", "interrupted"):
            if run[name] is None:
                del run[name]
        return run


def assets_of(operation: Operation, result: Result) -> list[Asset]:
    """Return the assets of the result of a list, the ones that are not listed last."""
    assets = [_asset(operation, item) for item in result.results or ()]
    for name in result.not_listed or ():
        gone = Asset(operation.resource, name, NOT_LISTED, NOT_SENT, False, False, skipped=True)
        assets.append(gone)
    return assets


def _asset(operation: Operation, item: Result) -> Asset:
    envelope = item.asset or {}
    present = item.present()
    attributes = envelope.get("attributes")
    known = {name: present[name] for name in keys(REPORT) if name in present}
    known.update(
        resource=operation.resource,
        name=item.item,
        result=_result(operation, item),
        outcome=item.outcome,
        changed=item.changed,
        failed=item.failed,
        id=envelope.get("id"),
        address=attributes.get("ip") if isinstance(attributes, dict) else None,
        msg=str(item.msg),
        cause=item.msg.text,
        command=item.msg.command,
        since=item.msg.since,
    )
    return Asset(**known)


def _result(operation: Operation, item: Result) -> str:
    """Return in words how an item of a list has ended, or its plan."""
    if item.plan:
        return _PLANS[item.plan]
    if item.skipped:
        return NOT_STARTED
    if is_in_doubt(item):
        return IN_DOUBT
    if item.outcome == REJECTED:
        return "rejected"
    if item.changed:
        return operation.done
    other = "not sent" if item.failed else UNCHANGED
    return DIFFERS if item.differs else other


def is_in_doubt(item: Result) -> bool:
    """Return whether it is not known that the asset of an item exists, or with which id."""
    return item.outcome == UNKNOWN or (item.outcome == ACCEPTED and item.asset is None)


def tally(operation: Operation, assets: Iterable[Asset], is_plan: bool) -> dict[str, int]:
    """Return how many assets have each result, in the order for the screen."""
    found = Counter(asset.result for asset in assets)
    if is_plan:
        return {word: found[word] for word in _IN_PLAN if found[word]}
    words = (operation.done, *_AT_END)
    always = words[:4] if found else ()
    return {word: found[word] for word in words if found[word] or word in always}


def result_word(result: str) -> str:
    """Return the word of a result for people."""
    return "not started" if result == NOT_STARTED else result


def counted(counts: Mapping[str, int]) -> str:
    """Return a tally as a text."""
    return ", ".join(f"{number:,} {result_word(word)}" for word, number in counts.items())
