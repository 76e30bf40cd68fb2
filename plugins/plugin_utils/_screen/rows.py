# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rows of a list or a run: the result of each asset, with a word for it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Iterable, Mapping

from ...module_utils._call.policy import Operation
from ...module_utils._errors import ACCEPTED, REJECTED, UNKNOWN, Message
from ...module_utils._list.result import picked
from ...module_utils._resources.names import id_of
from ...module_utils._result import REPORT, Result, Returned

CREATE, UPDATE, ADOPT = "create", "update", "adopt"
EFFECTS = (CREATE, UPDATE, ADOPT)  # the plans that change something
DIFFERS, NOT_LISTED = "differs", "not listed"
IN_DOUBT, IN_FLIGHT = "in doubt", "in flight"
NOT_STARTED, UNCHANGED = "not started", "unchanged"
FORMAT = "infrastructure.services report"
PLANNED, ENDED = "planned", "ended"  # the states of a run
# Of a file that claims to be a report.
DAMAGES = (ValueError, KeyError, TypeError, AttributeError, RecursionError)

# The plans whose words are not their names.
_PLANS = {**{plan: f"to {plan}" for plan in EFFECTS}, "keep": UNCHANGED}
# The mark of each word, in the order of counts.
MARKS = {
    "to create": "+",
    "to update": "~",
    "to adopt": ">",
    "created": "+",
    "updated": "~",
    "adopted": ">",
    DIFFERS: "!",
    IN_DOUBT: "?",
    IN_FLIGHT: "?",
    UNKNOWN: "?",
    REJECTED: "x",
    "not sent": "x",
    NOT_STARTED: ".",
    NOT_LISTED: ".",
    UNCHANGED: "=",
}
_BY_NEED = "?!x~>+.="


@dataclass(frozen=True)
class Run:
    """The lists of a run of Ansible, or of its plan (docs/report.schema.json)."""

    run: str
    state: str
    service: str
    ledger: str | None
    by: str
    began_at: str
    ended_at: str = ""
    ledger_id: str | None = None
    # Of a plan: number and revision of the last row of the ledger's history.
    serial: dict[str, int] | None = None
    refused: str = ""  # why the plan cannot be approved
    warnings: tuple[str, ...] = ()
    results: tuple[Result, ...] = ()

    @classmethod
    def from_json(cls, decoded: Any) -> Run:
        """Return the run of a report; raise one of DAMAGES."""
        known = dict(decoded)
        if known.pop("format") != FORMAT:
            raise ValueError
        del known["counts"]
        results = tuple(Result.from_ansible(row).but(more={}) for row in known.pop("results"))
        return cls(**{**known, "warnings": tuple(known["warnings"]), "results": results})

    @property
    def is_for_approval(self) -> bool:
        """Whether this is a plan that can be approved: it has an effect, which a ledger limits."""
        return (
            any(row.plan in EFFECTS for row in self.results)
            and self.ledger_id is not None
            and not self.refused
        )

    @property
    def lists(self) -> dict[str, list[Result]]:
        """The rows by resource."""
        found: dict[str, list[Result]] = {}
        for row in self.results:
            found.setdefault(row.resource, []).append(row)
        return found

    def as_json(self) -> Returned:
        """Return the run as the JSON file has it."""
        counts = {resource: tally(rows) for resource, rows in self.lists.items()}
        results = [{"failed": False, **row.as_ansible(REPORT)} for row in self.results]
        return {"format": FORMAT, **vars(self), "counts": counts, "results": results}


def rows_of(operation: Operation, result: Result) -> list[Result]:
    """Return the rows of the result of a list, the ones that are not listed last."""
    gone = [Result(item=name, plan="not_listed", skipped=True) for name in result.not_listed or ()]
    return [_row(operation, item) for item in (*(result.results or ()), *gone)]


def _row(operation: Operation, item: Result) -> Result:
    text = item.msg.text
    asset = item.asset and {**item.asset, "id": id_of(item.asset) or None}
    return item.but(
        resource=operation.resource.name,
        word=_word(operation, item),
        msg=Message(text[:1].upper() + text[1:]),  # the row has the name of the asset
        command=item.msg.command,
        since=item.msg.since,
        asset=picked(asset, ("id", "attributes.ip")) if asset else None,
    )


def _word(operation: Operation, item: Result) -> str:
    """Return in words how an item of a list has ended, or its plan."""
    if item.plan:
        return _PLANS.get(item.plan, item.plan.replace("_", " "))
    if item.skipped:
        return NOT_STARTED
    if is_in_doubt(item):  # an update is safe to repeat
        return IN_DOUBT if operation.creates else UNKNOWN
    if item.outcome == REJECTED:
        return REJECTED
    if item.changed:
        return operation.done if item.outcome == ACCEPTED else "adopted"
    other = "not sent" if item.failed else UNCHANGED
    return DIFFERS if item.differs else other


def is_in_doubt(item: Result) -> bool:
    """Return whether it is not known that the asset of an item exists, or with which id."""
    return item.outcome == UNKNOWN or (item.outcome == ACCEPTED and item.asset is None)


def mark(row: Result) -> str:
    """Return the mark of its word; a failure or a loss is never marked as a success."""
    found = MARKS[row.word]
    if row.failed and found in "+~=":
        return "x"
    return "!" if row.lost else found


def by_need(rows: Iterable[Result]) -> list[Result]:
    """Return the rows that need a person most first."""
    return sorted(rows, key=lambda row: _BY_NEED.index(mark(row)))


def tally(rows: Iterable[Result]) -> dict[str, int]:
    """Return how many rows have each word."""
    found = Counter(row.word for row in rows)
    return {word: found[word] for word in MARKS if found[word]}


def counted(counts: Mapping[str, int]) -> str:
    """Return a tally as a text."""
    return ", ".join(f"{number:,} {word}" for word, number in counts.items()) or "the list is empty"


def by_cause(rows: Iterable[Result]) -> list[list[Result]]:
    """Return the rows in groups of one word and one message."""
    found: dict[tuple[str, str], list[Result]] = {}
    for row in rows:
        found.setdefault((row.word, row.msg.text), []).append(row)
    return [*found.values()]
