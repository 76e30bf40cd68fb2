# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the asset that a task asks for, and the known one, to a plan: the body and the changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Iterable, Mapping, NamedTuple, Sequence

from .._call.policy import Operation
from .._errors import InvalidInput
from .._http.urls import require_segment
from .._secrets import holds_placeholder, without_placeholders
from .._values import (
    ABSENT,
    DICT,
    TEXT,
    Asset,
    Difference,
    Params,
    Spec,
    differences,
    encode,
    fields,
    overlay,
    prune,
)

# The fields of every asset (docs/openapi.yaml), and those of them that an update may send.
ENVELOPE = ("id", "name", "description", "service", "attributes", "platform", "region", "tenant")
_UPDATED = tuple(name for name in ENVELOPE if name not in ("id", "attributes"))
_PARTS = (*_UPDATED, "attributes", "extra_attributes")

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

        A list is one field.
        """
        known = prune({**without_placeholders(self.known), "id": None})
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


class Creation(AssetOperation):
    """Creates an asset by its name; a recorded one is not sent again."""

    @property
    def options(self) -> Spec:
        return dict(
            name=dict(type=TEXT, required=True),
            id=dict(type=TEXT),
            attributes=dict(type=DICT, default={}, options=self.resource.attributes),
            extra_attributes=dict(type=DICT, default={}),
            on_difference=dict(type=TEXT, choices=["warn", "fail"], default="warn"),
        )

    def wanted(self, params: Params) -> Wanted:
        name, identifier = params["name"], params["id"]
        require_name("name", name)
        if identifier is not None:
            require_name("id", identifier)
        require_usable(params, ("name", "id", "attributes", "extra_attributes"))
        body = {"name": name, "attributes": _attributes(params, self.resource.attributes)}
        fails = params["on_difference"] == "fail"
        force = params["force"] and identifier is None
        return Wanted(name, body, force=force, fails_on_difference=fails, id=identifier)

    def plan(self, wanted: Wanted, recorded: Entry | None) -> Plan:
        if recorded is None and wanted.id is not None:
            raise InvalidInput("id", "needs a ledger, which records the machine: set ledger")
        if recorded is None or wanted.force:
            return Plan(wanted.body, {})
        known = recorded.asset.get("id")
        if wanted.id not in (None, str(known)):
            raise InvalidInput(
                "id",
                f"is {wanted.id!r}, but {known or 'no id'} is recorded for this name. Correct the"
                " id; if the recorded machine is gone, forget its entry first with"
                " infrastructure.services.ledger_entry (state: absent)",
            )
        # Without attributes there is nothing to compare.
        compared = {key: value for key, value in wanted.body.items() if value != {}}
        changes = differences(compared, recorded.sent or recorded.asset)
        if not recorded.sent:  # of an adopted one only some fields may be known
            changes = [change for change in changes if change.found not in (ABSENT, None)]
        return Plan(wanted.body, recorded.asset, settled=True, changes=tuple(changes))


class Update(AssetOperation):
    """Updates an asset by its id."""

    constraints: ClassVar[Constraints] = dict(
        required_one_of=[(*_PARTS, "body")],
        mutually_exclusive=[("body", part) for part in _PARTS],
    )

    @property
    def options(self) -> Spec:
        return dict(
            id=dict(type=TEXT, required=True),
            **fields(TEXT, *_UPDATED),
            attributes=dict(type=DICT, options=self.resource.attributes),
            **fields(DICT, "extra_attributes", "body", "current"),
            send=dict(type=TEXT, choices=["given", "complete"], default="given"),
        )

    def wanted(self, params: Params) -> Wanted:
        identifier = params["id"]
        current = params["current"]
        require_segment("id", identifier)
        require_usable(params, ("id", *_PARTS, "body"))
        encode(current, "current")
        if current and current.get("id") not in (None, identifier):
            raise InvalidInput("current", f"is asset {current['id']!r}, but id is {identifier!r}")
        body = params["body"]
        if body is None:
            body = {name: params[name] for name in _UPDATED if params[name] is not None}
            if params["attributes"] is not None or params["extra_attributes"] is not None:
                body["attributes"] = _attributes(params, self.resource.attributes)
        if body in ({}, {"attributes": {}}):
            raise InvalidInput(
                "attributes or body", "there is nothing to update: no field is given"
            )
        return Wanted(
            key=identifier,
            id=identifier,
            body=body,
            current=current,
            is_complete=params["send"] == "complete",
            force=params["force"],
        )

    def plan(self, wanted: Wanted, recorded: Entry | None) -> Plan:
        recorded = recorded if recorded and recorded.state == DONE else None
        known = wanted.current or (recorded.asset if recorded else {})
        body = wanted.body
        if wanted.is_complete:
            if not known or holds_placeholder(known):
                raise InvalidInput(
                    "send",
                    "complete needs the asset as it is now, without masked values: give current, or"
                    " a ledger that has it",
                )
            # The service may not repeat all that was sent.
            sent = recorded.sent if recorded and not wanted.current else {}
            body = overlay(overlay(prune(sent), prune(known)), body)
        # Each attribute is a change of its own.
        attributes = known.get("attributes") or {}
        compared = without_placeholders({**known, "attributes": attributes})
        if known and not wanted.force and not differences(wanted.body, compared):
            return Plan(body, known, settled=True)
        return Plan(body, known, changes=tuple(differences(body, compared)))


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


def _attributes(params: Params, typed: Spec) -> Asset:
    """Return the attributes to send, typed and extra ones, without nulls; raise InvalidInput."""
    extra = params["extra_attributes"] or {}
    for key in extra:
        if key in typed:
            raise InvalidInput(
                "extra_attributes", f"{key} is an option of attributes; give it there"
            )
    pruned: Asset = prune({**(params["attributes"] or {}), **extra})
    return pruned
