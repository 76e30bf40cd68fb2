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


def _shown(masking: str, *places: str) -> dict[str, Any]:
    """Return the metadata of a key: how secrets are masked in it, and where it is shown."""
    return {"masking": masking, "places": places}


_FACT = _shown(NEVER, LIST, REPORT)
_SAID = _shown(TEXT, LIST, REPORT)
_PLANNED = _shown(DATA, SCREEN, REPORT)
_ANSWER = _shown(TEXT, LIST)


@dataclass(frozen=True)
class Result:
    """The result of a task, of one asset of a list, or of a list.

    A key that is not known has its default. Each key is named here and nowhere else.
    """

    outcome: str = field(default=NOT_SENT, metadata=_FACT)
    changed: bool = field(default=False, metadata=_FACT)
    failed: bool = field(default=False, metadata=_FACT)
    # Not started; the reason is in `msg`.
    skipped: bool = field(default=False, metadata=_FACT)
    status: int | None = field(default=None, metadata=_FACT)
    request_attempts: int | None = field(default=None, metadata=_FACT)
    begun_after: float | None = field(default=None, metadata=_FACT)  # seconds
    seconds: float | None = field(default=None, metadata=_FACT)
    # After each 429: when the wait began, and how long it took, in seconds.
    waits: tuple[Wait, ...] = field(default=(), metadata=_shown(NEVER, SCREEN, REPORT))
    trace_id: str | None = field(default=None, metadata=_SAID)
    msg: Message = field(default=Message(""), metadata=_SAID)
    plan: str = field(default="", metadata=_FACT)
    differs: tuple[str, ...] = field(default=(), metadata=_SAID)
    lost: tuple[Json, ...] = field(default=(), metadata=_shown(DATA, LIST, REPORT))
    body: Json | None = field(default=None, metadata=_PLANNED)
    known: Json | None = field(default=None, metadata=_PLANNED)
    changes: tuple[Json, ...] = field(default=(), metadata=_PLANNED)
    unsent: tuple[Json, ...] = field(default=(), metadata=_PLANNED)
    asset: Json | None = field(default=None, metadata=_shown(DATA, LIST))
    error_body: str | None = field(default=None, metadata=_ANSWER)
    location: str | None = field(default=None, metadata=_ANSWER)
    # Of a list: one for each asset.
    diff: Any = field(default=None, metadata=_shown(DATA, LIST, DETAIL))
    # Messages; objects of ansible-core if they come from a module on a target.
    warnings: tuple[Any, ...] = field(default=(), metadata=_ANSWER)
    request: Json | None = field(default=None, metadata=_shown(DATA))
    ansible_facts: Json | None = field(default=None, metadata=_shown(DATA, DETAIL))
    invocation: Json | None = field(default=None, metadata=_shown(DATA))
    # The name or id of an asset of a list. The next three: only of a list itself.
    item: str | None = field(default=None, metadata=_shown(DATA, LIST))
    counts: Json | None = field(default=None, metadata=_shown(TEXT))
    results: tuple[Result, ...] | None = field(default=None, metadata=_shown(TEXT, DETAIL))
    not_listed: tuple[str, ...] | None = field(default=None, metadata=_shown(TEXT, DETAIL))
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
