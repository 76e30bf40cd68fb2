# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The result of a task: its keys, where each of them is shown, and how secrets are masked in it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, Dict, Mapping, Tuple

from ._errors import NOT_SENT, Message, ServicesError

# How secrets are masked in a key: not at all, as in data, or as in a message.
NEVER, DATA, TEXT = "never", "data", "text"
# Where a key of one asset of a list is shown: in the result of the list, on the screen, or in the
# report. DETAIL: the role leaves it out of the result of a list that failed.
LIST, SCREEN, REPORT, DETAIL = "list", "screen", "report", "detail"

Json = Mapping[str, Any]
# The result of a task or a module, as Ansible gets it.
Returned = Dict[str, Any]
Wait = Tuple[float, float]


def _key(default: Any, masking: str, *places: str) -> Any:
    """Return a key of a result: how secrets are masked in it, and where it is shown."""
    return field(default=default, metadata={"masking": masking, "places": places})


_FACT = NEVER, LIST, REPORT
_SAID = TEXT, LIST, REPORT
_PLANNED = DATA, SCREEN, REPORT
_ANSWER = TEXT, LIST


@dataclass(frozen=True)
class Result:
    """The result of a task, of one asset of a list, or of a list.

    A key that is not known has its default. Each key is named here and nowhere else.
    """

    outcome: str = _key(NOT_SENT, *_FACT)
    changed: bool = _key(False, *_FACT)
    failed: bool = _key(False, *_FACT)
    # Not started; the reason is in `msg`.
    skipped: bool = _key(False, *_FACT)
    status: int | None = _key(None, *_FACT)
    request_attempts: int | None = _key(None, *_FACT)
    begun_after: float | None = _key(None, *_FACT)  # seconds
    seconds: float | None = _key(None, *_FACT)
    # After each 429: when the wait began, and how long it took, in seconds.
    waits: tuple[Wait, ...] = _key((), NEVER, SCREEN, REPORT)
    trace_id: str | None = _key(None, *_SAID)
    msg: Message = _key(Message(""), *_SAID)
    plan: str = _key("", *_FACT)
    differs: tuple[str, ...] = _key((), *_SAID)
    lost: tuple[Json, ...] = _key((), DATA, LIST, REPORT)
    body: Json | None = _key(None, *_PLANNED)
    known: Json | None = _key(None, *_PLANNED)
    changes: tuple[Json, ...] = _key((), *_PLANNED)
    unsent: tuple[Json, ...] = _key((), *_PLANNED)
    asset: Json | None = _key(None, DATA, LIST)
    error_body: str | None = _key(None, *_ANSWER)
    location: str | None = _key(None, *_ANSWER)
    # Of a list: one for each asset.
    diff: Any = _key(None, DATA, LIST, DETAIL)
    # Messages; objects of ansible-core if they come from a module on a target.
    warnings: tuple[Any, ...] = _key((), *_ANSWER)
    request: Json | None = _key(None, DATA)
    ansible_facts: Json | None = _key(None, DATA, DETAIL)
    invocation: Json | None = _key(None, DATA)
    # The name or id of an asset of a list. The next three: only of a list itself.
    item: str | None = _key(None, DATA, LIST)
    counts: Json | None = _key(None, TEXT)
    results: tuple[Result, ...] | None = _key(None, TEXT, DETAIL)
    not_listed: tuple[str, ...] | None = _key(None, TEXT, DETAIL)
    # Keys of one module alone, or of Ansible itself.
    more: Json = field(default_factory=dict)

    @classmethod
    def of_error(cls, error: ServicesError) -> Result:
        """Return the result of a task that failed with the error."""
        known = {"outcome": error.outcome, "changed": error.has_changed, **error.details}
        return cls(failed=True, msg=error.final_message, **known)

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

    def present(self, *places: str) -> dict[str, Any]:
        """Return the known keys that are shown in one of these places, of all without places."""
        values = vars(self)
        names = keys(*places)
        return {name: values[name] for name in names if values[name] != _DEFAULTS[name]}

    def as_ansible(self, *places: str) -> Returned:
        """Return the result as Ansible gets it, with each message as one text."""
        shown = {"outcome": self.outcome, "changed": self.changed, **self.present(*places)}
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

    def without(self, place: str) -> Result:
        """Return the result without the keys that are shown in this place."""
        return self.but(**{name: _DEFAULTS[name] for name in keys(place)})


_FIELDS = [each for each in fields(Result) if each.metadata]
_DEFAULTS: dict[str, Any] = {each.name: each.default for each in _FIELDS}
MASKING: dict[str, str] = {each.name: each.metadata["masking"] for each in _FIELDS}


@lru_cache
def keys(*places: str) -> tuple[str, ...]:
    """Return the keys that are shown in one of the places, in their order; without places, all."""
    shown = [each for each in _FIELDS if not places or {*places} & {*each.metadata["places"]}]
    return tuple(each.name for each in shown)


def _as_ansible(value: object) -> object:
    if isinstance(value, Result):  # of an asset of a list
        return {**value.as_ansible(LIST), "failed": value.failed}
    return str(value) if isinstance(value, Message) else value
