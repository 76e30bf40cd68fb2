# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the asset that a task asks for, and the known one, to a plan; and from the plan to its result,
which check mode predicts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Iterable, Mapping, NamedTuple, Sequence

from .._call.policy import Operation
from .._call.sending import Settings
from .._errors import InvalidInput, Message, ServicesError
from .._result import Result
from .._secrets import without_placeholders
from .._values import (
    ABSENT,
    DICT,
    Asset,
    Difference,
    Option,
    Params,
    Spec,
    differences,
    encode,
    option_at,
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


# What a plan does: send the request; nothing, since the asset is recorded so, or differs and cannot
# be changed; record an asset that exists; fail, with an error that says why.
SEND, KEEP, DIFFERS, ADOPT, REFUSE = "send", "keep", "differs", "adopt", "refuse"


@dataclass(frozen=True)
class Plan:
    """What a task found, and what it will do, computed without contacting the service."""

    action: str
    body: Asset
    known: Asset  # the asset as it is now, as far as known; {}: nothing is known
    path_id: str = ""  # the id in the path of the request
    changes: tuple[Difference, ...] = ()  # of the known or recorded fields
    # The fields of a recorded asset that are asked for, and were not when it was created.
    never_sent: tuple[str, ...] = ()
    adopted: Entry | None = None  # what is recorded to adopt an asset
    error: ServicesError | None = None  # why it is refused

    @property
    def differs(self) -> tuple[str, ...]:
        """The fields of a recorded asset that differ from the wanted ones, with both values."""
        template = "{wanted} asked for, {found} recorded"
        changes = self.changes if self.action == DIFFERS else ()
        return tuple(change.describe(template) for change in changes)

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
        if self.action == ADOPT:
            return {"plan": ADOPT, "body": self.body}
        changes = tuple(change.named("new", "old") for change in self.changes)
        if self.action != SEND:
            return {"plan": self.action, "changes": changes}
        unsent = tuple({"name": known.field, "value": known.wanted} for known in self.unsent())
        return {"plan": operation.word, "changes": changes, "unsent": unsent, "body": self.body}


NOT_PLANNED = Plan(REFUSE, {}, {}, error=ServicesError("there is no plan"))


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
    plan: Plan = NOT_PLANNED
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
            return self.refused(error)

    def refused(self, error: ServicesError) -> Task:
        """Return the task with a plan that fails."""
        return replace(self, plan=Plan(REFUSE, {}, {}, error=error))


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


def keep(task: Task, check_mode: bool) -> Result:
    """Return the result of a task whose asset is recorded, or will be; raise its error."""
    plan = task.plan
    if plan.error:
        raise plan.error
    warnings = _about(_DIFFERS, plan.differs)
    about: dict[str, Any] = {"request_attempts": 0, "differs": plan.differs}
    if check_mode:
        about.update(plan.details(task.operation))
    if plan.differs and task.fails_on_difference:
        text = _FAILS.format(*warnings)
        raise ServicesError(Message(text, task.asset), asset=plan.known, **about)
    changed = plan.action == ADOPT
    before = {} if changed else plan.known
    result = _result(task, plan.known, before, plan.known, warnings, changed=changed, **about)
    # The same for all assets of a list, which so has it once.
    new = [Message(_NEVER_SENT.format(field)) for field in dict.fromkeys(plan.never_sent)]
    return result.but(warnings=(*result.warnings, *new))


def predict(task: Task) -> Result:
    """Return the result of a request that check mode does not send."""
    plan = task.plan
    sent = {task.operation.resource.key: task.key, **plan.body}
    asset, after = _predicted(task.operation, plan.known, sent)
    warnings = _about(_KNOWN, (known.field for known in plan.unsent()))
    about = {"request_attempts": 0, **plan.details(task.operation)}
    return _result(task, asset, plan.known, after, warnings, **about)


def compare(task: Task, asset: Asset) -> Result:
    """Return the result of a request by which the service has answered with this asset."""
    plan = task.plan
    # The answer to an update certainly has the id of the asset, which its body lacks.
    sent = {task.operation.resource.key: task.key, **plan.body}
    lost = _lost(plan, asset, task.operation.resource.envelope)
    warnings = _about(_UNEXPECTED, _unexpected(task.operation, sent, asset))
    warnings += _about(_LOST, (field.describe("{wanted} known, {found} now") for field in lost))
    told = tuple(field.named("known", "now") for field in lost)
    return _result(task, asset, plan.known, asset, warnings, lost=told)


def _result(
    task: Task,
    asset: Asset,
    before: Asset,
    after: Asset,
    warnings: list[str],
    changed: bool = True,
    **about: Any,
) -> Result:
    """Return the result of a task; `before`, `after`: what is known of its asset."""
    operation = task.operation
    if changed and task.plan.action == SEND:
        sent = {operation.resource.key: task.key, **task.plan.body}
        warnings = [*warnings, *_about(_NOT_KNOWN, _not_known(operation, task.plan, sent, after))]
    return Result(
        changed=changed,
        asset=asset,
        warnings=tuple(Message(text, task.asset) for text in warnings),
        ansible_facts={operation.resource.name: asset},
        diff=_diff(before, after, task.asset),
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


def _unexpected(operation: AssetOperation, sent: Asset, asset: Asset) -> list[str]:
    """Return the fields that came back with other values; an empty dict may come back filled."""
    return [
        field.describe("{wanted} sent, {found} came back")
        for field in differences(sent, asset, operation.resource.envelope)
        if field.found is not ABSENT and field.wanted != {}
    ]


def _not_known(operation: AssetOperation, plan: Plan, sent: Asset, after: Asset) -> list[str]:
    """Return the fields that an update drops for all that is known of the asset `after` it."""
    if plan.known or operation.creates or operation.removes:
        return []
    return [name for name in ENVELOPE if name not in sent and after.get(name) is None]


def _lost(plan: Plan, asset: Asset, envelope: Option) -> list[Difference]:
    """Return the known fields that were not sent and came back different or not at all.

    An answer that repeats only the fields that were sent shows nothing about the others.
    """
    unsent = plan.unsent()
    shown = {known.path[0] for known in unsent if value_at(asset, known.path) is not ABSENT}
    lost: list[Difference] = []
    for known in unsent:
        if known.path[0] in shown or shown - {"attributes"}:
            option = option_at(envelope, known.path)
            lost += differences(known.wanted, value_at(asset, known.path), option, known.path)
    return lost
