# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the asset that a task asks for, and the known one, to a plan: the body and the changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Iterable, Mapping, NamedTuple, Sequence

from .._call.client import Settings
from .._call.policy import Operation
from .._errors import InvalidInput, ServicesError
from .._secrets import holds_placeholder, without_placeholders
from .._values import (
    ABSENT,
    Asset,
    Difference,
    Params,
    Spec,
    differences,
    encode,
    prune,
)

# The fields of every asset (docs/openapi.yaml).
ENVELOPE = ("id", "name", "description", "service", "attributes", "platform", "region", "tenant")

DONE = "done"  # the state of an entry whose asset is known
# Across options, as ansible-core has them.
Constraints = Mapping[str, Sequence[Sequence[Any]]]


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
    revision: int = 0  # a random number, new with each write
    # Until when its lease runs, in seconds since 1970 by the clock of the database; 0: it does not.
    lease_until: int = 0


@dataclass(frozen=True)
class Wanted:
    """The asset that a task asks for, checked."""

    key: str  # the name or id that identifies the asset
    body: Asset
    current: Asset | None = None  # the asset as the user knows it
    is_complete: bool = False  # whether to send the whole asset
    force: bool = False
    fails_on_difference: bool = False
    id: str | None = None  # of an asset that exists, if the user gives it


@dataclass(frozen=True)
class Plan:
    """The effect of a task, computed without contacting the service."""

    body: Asset
    known: Asset  # the asset as it is now, as far as known; {}: nothing is known
    settled: bool = False  # whether there is nothing to send
    changes: tuple[Difference, ...] = ()  # of the known or recorded fields
    adopted: Entry | None = None  # what is recorded instead of sending the body

    @property
    def differs(self) -> tuple[str, ...]:
        """The fields of a settled asset that differ from the recorded ones, with both values."""
        template = "{wanted} asked for, {found} recorded"
        return tuple(change.describe(template) for change in self.changes) if self.settled else ()

    def unsent(self) -> list[Difference]:
        """Return the fields of the known asset that are not sent, without masked and empty ones.

        A list is one field. A request without a body keeps no field.
        """
        known = prune({**without_placeholders(self.known), "id": None}) if self.body else {}
        return [
            difference
            for difference in differences(known, {"attributes": {}, **self.body})
            if difference.found is ABSENT
            and difference.wanted not in ([], {})
            and all(isinstance(step, str) for step in difference.path)
        ]

    def details(self, operation: Operation) -> dict[str, Any]:
        """Return what people read of a plan: a word for it, changes, body, known fields not sent."""
        if self.adopted:
            return {"plan": "adopt", "body": self.body}
        changes = tuple(change.named("new", "old") for change in self.changes)
        if self.settled:
            return {"plan": "differs" if self.differs else "keep", "changes": changes}
        unsent = tuple({"name": known.field, "value": known.wanted} for known in self.unsent())
        return {"plan": operation.word, "changes": changes, "unsent": unsent, "body": self.body}


class AssetOperation(Operation):
    """An operation on an asset, with the options that its module needs for it."""

    constraints: ClassVar[Constraints] = {}

    @property
    def options(self) -> Spec:
        """The argument spec of the options of the module alone."""
        raise NotImplementedError

    def wanted(self, params: Params) -> Wanted:
        """Return the asset that validated options ask for; raise InvalidInput."""
        raise NotImplementedError

    def plan(self, wanted: Wanted, recorded: Entry | None) -> Plan:
        """Return the plan; raise InvalidInput. `recorded`: the entry of the asset."""
        raise NotImplementedError


@dataclass(frozen=True)
class Task:
    """A task with validated options, and its plan once there is one."""

    operation: AssetOperation
    settings: Settings
    wanted: Wanted
    plan: Plan | None = None
    entry: Entry | None = None  # as it was read
    error: ServicesError | None = None  # instead of a plan
    # The number of the asset's last row in the history of the ledger; None if it was not read.
    last_row: int | None = None

    @property
    def asset(self) -> str:
        """The asset in messages, such as `virtual machine web01`."""
        return self.operation.resource.label(self.wanted.key)

    def planned(self, recorded: Entry | None = None) -> Task:
        """Return the task with its plan; `recorded`: the entry of the asset."""
        try:
            plan = self.operation.plan(self.wanted, recorded)
        except InvalidInput as error:
            return replace(self, error=error)
        return replace(self, plan=plan)

    def required_plan(self) -> Plan:
        """Return the plan; raise the error if there is none."""
        if self.plan is None:
            raise self.error or ServicesError("there is no plan")
        return self.plan


def require_name(option: str, name: str) -> None:
    """Raise InvalidInput for a name or id that no asset has, or that PostgreSQL could not record."""
    if not name.strip():
        raise InvalidInput(option, "must not be empty")
    if "\0" in name:
        raise InvalidInput(option, "contains a NUL character")


def require_usable(params: Params, options: Iterable[str]) -> None:
    """Raise InvalidInput for a value that JSON cannot represent or that is a masked secret."""
    for option in options:
        encode(params[option], option)
        if holds_placeholder(params[option]):
            raise InvalidInput(
                option, "contains a placeholder for a secret, so it is not the real value"
            )
