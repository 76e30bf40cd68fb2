# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The flow that all operations share: what is wanted, compared, sent (or predicted in check mode),
and returned.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Callable, Iterable, Mapping

from .. import _fields
from .._call.client import Client
from .._call.operation import Operation
from .._errors import InvalidInput, Message, RequestFailed, ServicesError
from .._fields import ABSENT, Difference, overlay, prune, unsent, value_at
from .._http import strict_json
from .._result import Result
from .._secrets import PLACEHOLDERS, without_placeholders

# The fields of every asset (docs/openapi.yaml).
ENVELOPE = ("id", "name", "description", "service", "attributes", "platform", "region", "tenant")


@dataclass(frozen=True)
class Recorded:
    """What the ledger has recorded of an asset: the body that was sent for it, and the envelope
    that came back.
    """

    sent: dict
    asset: dict


@dataclass(frozen=True)
class Wanted:
    """What a task asks for, checked."""

    key: str  # the name or id that identifies the asset among those of its kind
    body: dict  # what was given
    segment: str = ""  # the id as a segment of the path
    certain: Mapping = field(
        default_factory=dict
    )  # envelope fields that are certain, in addition to those of the body
    current: dict | None = None  # the asset as the user knows it
    is_complete: bool = False  # whether to send the whole asset
    force: bool = False
    fails_on_difference: str = ""  # the option that says so; empty: a difference is a warning


@dataclass(frozen=True)
class Plan:
    """What a task would do; computed without contacting the service."""

    body: dict  # what would be sent
    known: dict | None = None  # the asset as it is now, as far as known
    settled: bool = False  # whether nothing needs to be sent
    changes: tuple[Difference, ...] = ()  # what is wanted, against what is known or recorded

    def encoded(self) -> bytes:
        """Return the body to send, empty when nothing is; raise InvalidInput for what JSON cannot
        represent.
        """
        return b"" if self.settled else strict_json.encode(self.body, "the body")

    @property
    def differs(self) -> tuple[str, ...]:
        """Return the fields of a settled asset that differ from what is recorded, with both values."""
        template = "{wanted} asked for, {found} recorded"
        return tuple(each.describe(template) for each in self.changes) if self.settled else ()

    def unsent(self) -> dict[tuple[str, ...], object]:
        """Return the fields of the known asset that are not sent, by their path, without masked
        ones.
        """
        return unsent({**without_placeholders(self.known or {}), "id": None}, self.body)

    def details(self) -> dict[str, Any]:
        """Return what people look at: what is sent, what changes of what is known, and what of it
        is not sent.
        """
        changes = tuple(each.named("new", "old") for each in self.changes)
        details: dict[str, Any] = {"known": self.known, "changes": changes}
        if not self.settled:
            unsent = self.unsent().items()
            details["unsent"] = tuple({"name": ".".join(path), "value": it} for path, it in unsent)
            details["body"] = self.body
        return details

    def shown(self, operation: Operation, check_mode: bool) -> dict[str, Any]:
        """Return what a result says of the plan."""
        differs = {"differs": self.differs}
        if not check_mode:
            return differs
        word = "differs" if self.differs else "keep"
        return {"plan": word if self.settled else operation.word, **differs}


@dataclass(frozen=True, eq=False)
class Resource:
    """One kind of asset and the operation on it; each is a singleton, compared by identity."""

    operation: Operation
    attributes: dict  # the argument spec of the suboptions of `attributes`
    options: dict  # the argument spec of the module's own options
    constraints: dict  # what ansible-core checks across options
    read: Callable[[dict], Wanted]  # from validated options; raises InvalidInput
    plan: Callable[[Wanted, Recorded | None], Plan]  # raises InvalidInput

    @cached_property
    def instants(self) -> frozenset[str]:
        """Return the dotted names of the date-times."""
        return _fields.date_time_fields(self.attributes, "attributes")

    def differences(self, wanted: dict, found: dict) -> list[Difference]:
        """Return the fields of an envelope or body that differ in another one."""
        if repr(wanted) == repr(
            found
        ):  # a shortcut: identical, as most assets of a list of thousands are
            return []
        return _fields.differences(wanted, found, self.instants)

    def lost(self, plan: Plan, asset: dict) -> list[Difference]:
        """Return the fields that were known, were not sent, and came back different or not at all.

        An answer that repeats only what was sent tells nothing of them.
        """
        part, sent = asset.get("attributes"), plan.body.get("attributes") or {}
        is_envelope = any(
            name in asset and name not in plan.body for name in ENVELOPE if name != "id"
        )
        tells = is_envelope, is_envelope or (isinstance(part, dict) and bool(part.keys() - sent))
        found = []
        for path, value in plan.unsent().items():
            now = value_at(asset, path)
            if tells[path[0] == "attributes"] and _fields.differences(
                value, now, self.instants, ".".join(path)
            ):
                found.append(Difference(".".join(path), value, now))
        return found


def fields(kind: str, *names: str) -> dict[str, dict]:
    """Return the argument spec of fields of one type."""
    return {name: dict(type=kind) for name in names}


def require_usable(params: dict, options: Iterable[str], only_compared: Iterable[str] = ()) -> None:
    """Raise InvalidInput for an option with what JSON cannot represent, or with Ansible's
    placeholder for a secret.

    `only_compared`: the options in which such a placeholder does no harm.
    """
    for option, written in strict_json.texts(
        {option: params[option] for option in options}
    ).items():
        if option not in only_compared and any(
            placeholder in written for placeholder in PLACEHOLDERS
        ):
            raise InvalidInput(
                option, "contains a placeholder for a secret, so it is not the real value"
            )


def with_extra(attributes: dict | None, extra: dict | None, typed: dict) -> dict:
    """Return the attributes to send, typed and extra ones, without nulls; raise InvalidInput for
    one that is both.
    """
    for key in extra or {}:
        if key in typed:
            raise InvalidInput(
                "extra_attributes", f"{key} is an option of attributes; give it there"
            )
    return prune({**(attributes or {}), **(extra or {})})


def apply(
    resource: Resource, wanted: Wanted, plan: Plan, check_mode: bool, client: Client
) -> Result:
    """Apply a plan and return the task's result; raise InvalidInput or RequestFailed."""
    operation = resource.operation
    request = client.request(operation, wanted.segment, plan.encoded())
    shown = {"method": request.method, "url": request.url, "body": plan.body}
    told = {**client.not_sent, **plan.shown(operation, check_mode)}
    result = Result(changed=not plan.settled, request=shown, **told)
    if plan.settled:
        asset, warnings = plan.known, _difference_warnings(operation, wanted, plan, result)
    elif check_mode:
        asset, warnings = (
            overlay({**dict.fromkeys(ENVELOPE), **(plan.known or {}), **wanted.certain}, plan.body),
            [],
        )
    else:
        try:
            asset, accepted = client.call(operation, request, wanted.key)
        except RequestFailed as error:
            error.details["request"] = shown
            raise
        lost = resource.lost(plan, asset) if plan.known else []
        losses = tuple(each.named("known", "now") for each in lost)
        result = replace(result, lost=losses, **accepted)
        warnings = [
            *_unexpected_values(resource, wanted, plan, asset),
            *_losses(operation, wanted.key, lost),
        ]
    diff = _diff(f"{operation.noun} {wanted.key}", plan.known, asset)
    facts = {operation.resource: asset}
    return replace(result, asset=asset, warnings=tuple(warnings), ansible_facts=facts, diff=diff)


def _difference_warnings(
    operation: Operation, wanted: Wanted, plan: Plan, result: Result
) -> list[Message]:
    """Return a warning if a settled asset differs from what is wanted; raise ServicesError where
    that is a failure.
    """
    if not plan.differs:
        return []
    why = "it is recorded with different values, and the service has no operation to update it"
    said = Message(f"{why}: {', '.join(plan.differs)}.", f"{operation.noun} {wanted.key}")
    if wanted.fails_on_difference:
        hint = f"Nothing was sent. Give the values that are recorded, or set {wanted.fails_on_difference}: warn."
        told = dict(request=result.request, plan=result.plan, differs=result.differs)
        raise ServicesError(said.then(hint), asset=plan.known, **told)
    return [said]


def _unexpected_values(
    resource: Resource, wanted: Wanted, plan: Plan, asset: dict
) -> list[Message]:
    """Return a warning for the fields that came back with other values; an empty dict may come back
    filled.
    """
    found = resource.differences({**wanted.certain, **plan.body}, asset)
    other = [
        difference
        for difference in found
        if difference.found is not ABSENT and difference.wanted != {}
    ]
    fields = ", ".join(
        difference.describe("{wanted} sent, {found} came back") for difference in other
    )
    what = "these fields came back different from what was sent"
    return (
        [Message(f"{what}: {fields}.", f"{resource.operation.noun} {wanted.key}")] if fields else []
    )


def _losses(operation: Operation, key: str, lost: list[Difference]) -> list[Message]:
    """Return the warning for fields that an update may have removed."""
    if not lost:
        return []
    fields = ", ".join(each.describe("{wanted} known, {found} now") for each in lost)
    text = (
        f"these fields were known and not sent, and came back different or not at all: {fields}. The service replaces"
        " what is not sent, or somebody else changed it. To send the whole asset, set send: complete."
    )
    return [Message(text, f"{operation.noun} {key}")]


def _diff(title: str, known: dict | None, after: dict) -> dict[str, Any]:
    return {
        "before": known or {},
        "after": after,
        "before_header": f"{title} ({'as known' if known else 'not known'})",
        "after_header": title,
    }
