# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The result of a task: its keys, and where each of them is shown.

A list, its plan and its report have one for each asset.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, Dict, Mapping

from ._errors import ACCEPTED, NOT_SENT, Message, ServicesError

# Where a key is shown: in the result of a task, of one asset of a list, or in the report.
TASK, LIST, REPORT = "task", "list", "report"

Json = Mapping[str, Any]
# The result of a task or a module, as Ansible gets it.
Returned = Dict[str, Any]

_NO_MESSAGE = Message("")
# The places of the keys that are not shown in all of them.
_PLACES = {
    **dict.fromkeys(("last_row", "began", "body", "changes", "unsent"), (REPORT,)),
    **dict.fromkeys(("resource", "word", "command", "since"), (REPORT,)),
    **dict.fromkeys(("error_body", "location", "diff", "warnings"), (TASK, LIST)),
    **dict.fromkeys(("begun_after", "seconds"), (LIST, REPORT)),
    **dict.fromkeys(("request", "ansible_facts", "counts", "results", "not_listed"), (TASK,)),
}


@dataclass(frozen=True)
class Result:
    """The result of a task, of one asset of a list, or of a list.

    A key that is not known has its default. Each key is named here, and `_PLACES` says where.
    """

    outcome: str = NOT_SENT
    changed: bool = False
    failed: bool = False
    # Not started; the reason is in `msg`.
    skipped: bool = False
    status: int | None = None
    request_attempts: int | None = None
    begun_after: float | None = None  # seconds
    seconds: float | None = None
    msg: Message = _NO_MESSAGE
    plan: str = ""
    # Of a plan: the asset's last row in the history of the ledger.
    last_row: int | None = None
    # The revision of the beginning, or of the adoption, in the history of the ledger.
    began: int | None = None
    differs: tuple[str, ...] = ()
    lost: tuple[Json, ...] = ()
    body: Json | None = None
    changes: tuple[Json, ...] = ()
    unsent: tuple[Json, ...] = ()
    # In a report only its id and its address.
    asset: Json | None = None
    error_body: str | None = None
    location: str | None = None
    # Of a list: one for each asset.
    diff: Any = None
    # Messages; objects of ansible-core if they come from a module on a target.
    warnings: tuple[Any, ...] = ()
    request: Json | None = None
    ansible_facts: Json | None = None
    # Of a row of a report: the module for one such asset; how it ended, or its plan, in words; the
    # shell command that lists it if it is in doubt; since when it is.
    resource: str = ""
    word: str = ""
    command: str = ""
    since: str = ""
    # The name or id of an asset of a list. The next three: only of a list itself.
    item: str | None = None
    counts: Json | None = None
    results: tuple[Result, ...] | None = None
    not_listed: tuple[str, ...] | None = None
    # Keys of one module alone, or of Ansible itself.
    more: Json = field(default_factory=dict)

    @classmethod
    def of_error(cls, error: ServicesError) -> Result:
        """Return the result of a task that failed with the error."""
        known = {"outcome": error.outcome, "changed": error.outcome == ACCEPTED, **error.details}
        return cls(failed=True, msg=error.message, **known)

    @classmethod
    def from_ansible(cls, returned: Json) -> Result:
        """Return the result that a module has returned; `as_ansible` makes the same dict of it."""
        known: dict[str, Any] = {}
        for name in keys():
            value = returned.get(name)
            if name == "msg":
                value = Message(value) if isinstance(value, str) else None
            elif isinstance(value, list):
                value = tuple(value)
            if name != "results" and value not in (None, _DEFAULTS[name]):
                known[name] = value
        more = {name: value for name, value in returned.items() if name not in known}
        return cls(**known, more=more)

    def present(self, place: str = "") -> dict[str, Any]:
        """Return the known keys that are shown in this place, all without one."""
        values = vars(self)
        names = keys(place)
        return {name: values[name] for name in names if values[name] != _DEFAULTS[name]}

    def as_ansible(self, place: str = TASK) -> Returned:
        """Return the result as Ansible gets it, with each message as one text."""
        shown = {"outcome": self.outcome, "changed": self.changed, **self.present(place)}
        if self.request_attempts is not None:
            shown["status"] = self.status  # null without an answer
        for name, value in shown.items():
            if isinstance(value, Message):
                shown[name] = str(value)
            elif isinstance(value, tuple):
                shown[name] = [_as_ansible(each) for each in value]
        return {**self.more, **shown}

    def but(self, **changes: Any) -> Result:
        """Return the result with other values; dataclasses.replace takes ten times as long."""
        if not changes.keys() <= vars(self).keys():
            raise TypeError(f"no keys of a result: {changes.keys() - vars(self).keys()}")
        changed = object.__new__(Result)
        vars(changed).update(vars(self), **changes)
        return changed


_DEFAULTS = {each.name: each.default for each in fields(Result) if each.name != "more"}


@lru_cache
def keys(place: str = "") -> tuple[str, ...]:
    """Return the keys that are shown in a place, in their order; without a place, all."""
    return tuple(name for name in _DEFAULTS if not place or place in _PLACES.get(name, place))


def _as_ansible(value: object) -> object:
    if isinstance(value, Result):  # of an asset of a list
        return {**value.as_ansible(LIST), "failed": value.failed}
    return str(value) if isinstance(value, Message) else value
