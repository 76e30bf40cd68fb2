# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the asset that a task asks for, and the known one, to a plan; and from the plan to its result,
which check mode predicts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Iterable, Mapping, NamedTuple, Sequence

from .._call.client import NO_END, Client, Lease, Settings
from .._call.policy import Operation
from .._errors import InvalidInput, Message, ServicesError
from .._result import Result
from .._secrets import without_placeholders
from .._values import (
    ABSENT,
    DICT,
    Asset,
    Difference,
    Params,
    Spec,
    differences,
    encode,
    overlay,
    prune,
    value_at,
)
from .names import require_filled_in

_DIFFERS = (
    "it is recorded with different values, and no operation to update it is known: {}. Ask for the"
    " recorded values; if the machine was changed by other means, correct its entry with"
    " infrastructure.services.ledger_entry. Another machine needs another name."
)
_NEVER_SENT = (
    "{} was not sent for machines that are recorded, and no operation to update them is known. Only"
    " new ones get it. Where a machine has it, correct its entry with"
    " infrastructure.services.ledger_entry."
)
_KNOWN = (
    "these fields are known and not sent: {}. A service that replaces drops them; send: complete"
    " keeps them."
)
_NOT_KNOWN = (
    "nothing is known of it, and a service that replaces drops the fields that are not sent: {}."
    " Send them too; or record the asset, or give current, with send: complete."
)
_UNEXPECTED = "these fields came back different from what was sent: {}."
_LOST = (
    "these fields were known and not sent, and came back different or not at all: {}. The service"
    " replaces what is not sent, or somebody else changed it. To restore them, add the known values"
    " to the task, the item or its body, with send: complete."
)
_FAILS = (
    "{} Nothing was sent. To be only warned of it, set on_difference (in the role"
    " fleet_on_difference) to warn."
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
    began: int = 0  # the revision of its beginning
    # Until when its lease runs, in seconds since 1970 by the clock of the database; 0: it does not.
    lease_until: int = 0


NOTHING = Entry("", {}, {})


@dataclass(frozen=True)
class Plan:
    """The effect of a task, computed without contacting the service."""

    body: Asset
    known: Asset  # the asset as it is now, as far as known; {}: nothing is known
    settled: bool = False  # whether there is nothing to send
    changes: tuple[Difference, ...] = ()  # of the known or recorded fields
    # The fields of a recorded asset that are asked for, and were not when it was created.
    never_sent: tuple[str, ...] = ()
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

    def task(self, params: Params, settings: Settings) -> Task:
        """Return the task that validated options ask for; raise InvalidInput."""
        raise NotImplementedError

    def plan(self, task: Task) -> Plan:
        """Return the plan of a task whose entry was read; raise InvalidInput."""
        raise NotImplementedError


@dataclass(frozen=True)
class Task:
    """A task with validated options, and its plan once there is one."""

    operation: AssetOperation
    settings: Settings
    key: str  # the name or id that identifies the asset
    body: Asset  # as the options ask for it
    current: Asset | None = None  # the asset as the user knows it
    is_complete: bool = False  # whether to send the whole asset
    fails_on_difference: bool = False
    id: str | None = None  # of an asset that exists, if the user gives it
    entry: Entry | None = None  # as it was read
    plan: Plan | None = None
    error: ServicesError | None = None  # instead of a plan
    # The number of the asset's last row in the history of the ledger; None if it was not read.
    last_row: int | None = None

    @property
    def asset(self) -> str:
        """The asset in messages, such as `virtual machine web01`."""
        return self.operation.resource.label(self.key)

    def planned(self) -> Task:
        """Return the task with its plan."""
        try:
            return replace(self, plan=self.operation.plan(self))
        except InvalidInput as error:
            return replace(self, error=error)

    def required_plan(self) -> Plan:
        """Return the plan; raise the error if there is none."""
        if self.plan is None:
            raise self.error or ServicesError("there is no plan")
        return self.plan


def require_usable(params: Params, options: Iterable[str]) -> None:
    """Raise InvalidInput for a value that JSON cannot represent, or that a template left behind."""
    for option in options:
        encode(params[option], option)
        require_filled_in(option, params[option])


def attributes_to_send(params: Params, typed: Spec) -> Asset:
    """Return the attributes to send, typed and extra ones, without nulls; raise InvalidInput."""
    extra = params["extra_attributes"] or {}
    for key in extra:
        if key in typed:
            raise InvalidInput(
                "extra_attributes", f"{key} is an option of attributes; give it there"
            )
    pruned: Asset = prune({**(params["attributes"] or {}), **extra})
    return pruned


def apply_plan(task: Task, client: Client, lease: Lease = NO_END) -> Result:
    """Apply the plan of a task and return the result; raise ServicesError.

    `lease`: until when its request may be sent.
    """
    operation, plan = task.operation, task.required_plan()
    about: dict[str, Any] = {"request_attempts": 0, "differs": plan.differs}
    if not plan.adopted:
        request = client.build_request(task.id or plan.known.get("id", ""), plan.body or None)
    if client.context.check_mode:
        about.update(plan.details(operation))
    # The answer to an update certainly has the id of the asset, which its body lacks.
    sent = {operation.resource.key: task.key, **plan.body}
    if plan.settled or plan.adopted:
        asset = after = plan.known
        warnings = _about(_DIFFERS, plan.differs)
        if warnings and task.fails_on_difference:
            raise ServicesError(Message(_FAILS.format(*warnings), task.asset), asset=asset, **about)
    elif client.context.check_mode:
        asset, after = _predicted(operation, plan.known, sent)
        warnings = _about(_KNOWN, (known.field for known in plan.unsent()))
    else:
        asset, details = client.call(request, lease)
        after, lost = asset, _lost(plan, asset)
        warnings = _about(_UNEXPECTED, _unexpected(sent, asset))
        warnings += _about(_LOST, (field.describe("{wanted} known, {found} now") for field in lost))
        about.update(details, lost=tuple(field.named("known", "now") for field in lost))
    warnings += _about(_NOT_KNOWN, _not_known(operation, plan, sent, after))
    return Result(
        changed=not plan.settled,
        asset=asset,
        # The same for all assets of a list, which so has it once.
        warnings=(
            *(Message(text, task.asset) for text in warnings),
            *(Message(_NEVER_SENT.format(field)) for field in dict.fromkeys(plan.never_sent)),
        ),
        ansible_facts={operation.resource.name: asset},
        diff=_diff({} if plan.adopted else plan.known, after, task.asset),
        **about,
    )


def _diff(known: Asset, after: Asset, title: str) -> Asset:
    return {
        "before": known,
        "after": after,
        "before_header": f"{title} ({'as known' if known else 'not known'})",
        "after_header": title,
    }


def _about(text: str, fields: Iterable[str]) -> list[str]:
    """Return a warning about fields if there are any."""
    names = ", ".join(fields)
    return [text.format(names)] if names else []


def _predicted(operation: AssetOperation, known: Asset, sent: Asset) -> tuple[Asset, Asset]:
    """Return the asset that a request would leave, null where only the service knows a value, and
    what is known of it.
    """
    if operation.removes:
        return {}, {}
    nulls = {**dict.fromkeys(ENVELOPE), "attributes": _nulls(operation.resource.attributes)}
    filled = {name: value for name, value in sent.items() if value != {}}
    return overlay(overlay(nulls, prune(known)), filled), overlay(known, sent)


def _nulls(options: Spec) -> Asset:
    return {
        name: _nulls(option["options"]) if option["type"] is DICT else None
        for name, option in options.items()
    }


def _unexpected(sent: Asset, asset: Asset) -> list[str]:
    """Return the fields that came back with other values; an empty dict may come back filled."""
    return [
        field.describe("{wanted} sent, {found} came back")
        for field in differences(sent, asset)
        if field.found is not ABSENT and field.wanted != {}
    ]


def _not_known(operation: AssetOperation, plan: Plan, sent: Asset, after: Asset) -> list[str]:
    """Return the fields that an update drops for all that is known of the asset `after` it."""
    if plan.known or operation.creates or operation.removes:
        return []
    return [name for name in ENVELOPE if name not in sent and after.get(name) is None]


def _lost(plan: Plan, asset: Asset) -> list[Difference]:
    """Return the known fields that were not sent and came back different or not at all.

    An answer that repeats only the fields that were sent shows nothing about the others.
    """
    unsent = plan.unsent()
    shown = {known.path[0] for known in unsent if value_at(asset, known.path) is not ABSENT}
    lost: list[Difference] = []
    for known in unsent:
        if known.path[0] in shown or shown - {"attributes"}:
            lost += differences(known.wanted, value_at(asset, known.path), known.path)
    return lost
