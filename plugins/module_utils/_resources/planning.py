# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A resource, the asset that a task asks for, and the plan: the body and the changes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping, NamedTuple

from .. import _fields
from .._call.operation import Operation
from .._errors import InvalidInput
from .._fields import Asset, Difference, Params, Path, Spec, prune, unsent, value_at
from .._http import strict_json
from .._secrets import PLACEHOLDERS, without_placeholders

# The fields of every asset (docs/openapi.yaml).
ENVELOPE = ("id", "name", "description", "service", "attributes", "platform", "region", "tenant")


class Entry(NamedTuple):
    """An entry of the ledger: its state, the body that was sent, and the envelope if one came back."""

    state: str
    sent: Asset
    asset: Asset  # {}: none came back
    # UTC, `YYYY-MM-DDTHH:MM:SSZ`; empty until it is written, like the next two.
    began_at: str = ""
    changed_at: str = ""
    by: str = ""  # user@controller
    run: str = ""  # shared by all processes of one ansible run
    trace_id: str = ""
    revision: int = 0  # a random number, new with each write


@dataclass(frozen=True)
class Recorded:
    """The parts of an entry that a plan relies on: the body that was sent, and the envelope."""

    sent: Asset
    asset: Asset


@dataclass(frozen=True)
class Wanted:
    """The asset that a task asks for, checked."""

    key: str  # the name or id that identifies the asset
    body: Asset
    segment: str = ""  # the id as a segment of the path
    # Fields of the envelope that the answer is certain to have, in addition to the body.
    certain: Mapping[str, str] = field(default_factory=dict)
    current: Asset | None = None  # the asset as the user knows it
    is_complete: bool = False  # whether to send the whole asset
    force: bool = False
    # The option that asks for it; '': a difference is a warning.
    fails_on_difference: str = ""


@dataclass(frozen=True)
class Plan:
    """The effect of a task, computed without contacting the service."""

    body: Asset
    known: Asset | None = None  # the asset as it is now, as far as known
    settled: bool = False  # whether there is nothing to send
    changes: tuple[Difference, ...] = ()  # of the known or recorded fields

    @property
    def differs(self) -> tuple[str, ...]:
        """The fields of a settled asset that differ from the recorded ones, with both values."""
        template = "{wanted} asked for, {found} recorded"
        return tuple(change.describe(template) for change in self.changes) if self.settled else ()

    def unsent_fields(self) -> dict[Path, object]:
        """Return the fields of the known asset that are not sent, without masked ones."""
        return unsent({**without_placeholders(self.known or {}), "id": None}, self.body)

    def details(self) -> dict[str, Any]:
        """Return the parts of a plan that people read: body, changes, and known fields not sent."""
        changes = tuple(change.named("new", "old") for change in self.changes)
        details: dict[str, Any] = {"known": self.known, "changes": changes}
        if not self.settled:
            details["unsent"] = tuple(
                {"name": ".".join(path), "value": value}
                for path, value in self.unsent_fields().items()
            )
            details["body"] = self.body
        return details

    def word(self, operation: Operation) -> str:
        """Return the effect in one word."""
        if not self.settled:
            return operation.word
        return "differs" if self.differs else "keep"


class Resource(ABC):
    """One kind of asset and the operation on it; each is a singleton."""

    def __init__(
        self,
        operation: Operation,
        attributes: Spec,
        options: Spec,
        constraints: Mapping[str, list[Any]] | None = None,
    ) -> None:
        """`attributes`: the suboptions of `attributes`; `options`: those of the module alone.

        `constraints`: across options, as ansible-core has them.
        """
        self.operation = operation
        self.attributes = attributes
        self.options = options
        self.constraints: Mapping[str, list[Any]] = constraints or {}
        self._instants = _fields.date_time_fields(attributes, "attributes")

    @abstractmethod
    def wanted(self, params: Params) -> Wanted:
        """Return the asset that validated options ask for; raise InvalidInput."""

    @abstractmethod
    def plan(self, wanted: Wanted, recorded: Recorded | None) -> Plan:
        """Return the plan; raise InvalidInput."""

    def differences(self, wanted: Asset, found: Asset) -> list[Difference]:
        """Return the fields of an envelope or body that differ in another one."""
        # A shortcut: most assets of a long list are identical.
        if repr(wanted) == repr(found):
            return []
        return _fields.differences(wanted, found, self._instants)

    def lost_fields(self, plan: Plan, asset: Asset) -> list[Difference]:
        """Return the known fields that were not sent and came back different or not at all.

        An answer that repeats only the fields that were sent shows nothing about the others.
        """
        others = set(ENVELOPE) - plan.body.keys() - {"id"}
        shows_others = not others.isdisjoint(asset)
        attributes = asset.get("attributes")
        sent = plan.body.get("attributes") or {}
        shows_attributes = shows_others or (
            isinstance(attributes, dict) and bool(attributes.keys() - sent)
        )
        found = []
        for path, value in plan.unsent_fields().items():
            name = ".".join(path)
            now = value_at(asset, path)
            is_shown = shows_attributes if path[0] == "attributes" else shows_others
            if is_shown and _fields.differences(value, now, self._instants, name):
                found.append(Difference(name, value, now))
        return found


class Creation(Resource):
    """A resource that is created by its name; a recorded one is not sent again."""

    def __init__(self, operation: Operation, attributes: Spec) -> None:
        options: Spec = dict(
            name=dict(type="str", required=True),
            attributes=dict(type="dict", default={}, options=attributes),
            extra_attributes=dict(type="dict", default={}),
            on_difference=dict(type="str", choices=["warn", "fail"], default="warn"),
        )
        super().__init__(operation, attributes, options)

    def wanted(self, params: Params) -> Wanted:
        """Return the asset that the options ask for; raise InvalidInput."""
        require_usable(params, self.options)
        name = params["name"]
        require_name("name", name)
        attributes = with_extra(params["attributes"], params["extra_attributes"], self.attributes)
        fails = "on_difference" if params["on_difference"] == "fail" else ""
        body = {"name": name, "attributes": attributes}
        return Wanted(name, body, force=params["force"], fails_on_difference=fails)

    def plan(self, wanted: Wanted, recorded: Recorded | None) -> Plan:
        """Return the plan for creating it."""
        if recorded is None:
            return Plan(wanted.body)
        # Without attributes there is nothing to compare.
        given = {key: value for key, value in wanted.body.items() if value != {}}
        changes = tuple(self.differences(given, recorded.sent))
        return Plan(wanted.body, recorded.asset, settled=True, changes=changes)


def fields(kind: str, *names: str) -> Spec:
    """Return the argument spec of fields of one type."""
    return {name: {"type": kind} for name in names}


def require_name(option: str, name: str) -> None:
    """Raise InvalidInput for a name or id that no asset has, or that PostgreSQL could not record."""
    if not name.strip():
        raise InvalidInput(option, "must not be empty")
    if "\0" in name:
        raise InvalidInput(option, "contains a NUL character")


def require_usable(
    params: Mapping[str, Any], options: Iterable[str], only_compared: Iterable[str] = ()
) -> None:
    """Raise InvalidInput for a value that JSON cannot represent or that is a masked secret.

    `only_compared`: the options in which Ansible's placeholder for a secret does no harm.
    """
    for option in options:
        written = strict_json.encode(params[option], option).decode("utf-8")
        is_masked = any(placeholder in written for placeholder in PLACEHOLDERS)
        if is_masked and option not in only_compared:
            why = "contains a placeholder for a secret, so it is not the real value"
            raise InvalidInput(option, why)


def with_extra(attributes: Asset | None, extra: Asset | None, typed: Spec) -> Asset:
    """Return the attributes to send, typed and extra ones, without nulls; raise InvalidInput."""
    for key in extra or {}:
        if key in typed:
            why = f"{key} is an option of attributes; give it there"
            raise InvalidInput("extra_attributes", why)
    pruned: Asset = prune({**(attributes or {}), **(extra or {})})
    return pruned
