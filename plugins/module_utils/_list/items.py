# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The items of a list, validated as the options of the module for one asset are.

All faults are reported at once, before anything is sent.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Mapping

from .._errors import MAX_FAULTS, InvalidInput, ServicesError, listing, quantity
from .._fields import Params, json_differences
from .._result import Json
from .._secrets import Secrets, for_message, printable
from .._task.options import MOST_AT_ONCE, in_range, settings_from
from .._task.specs import ModuleSpec
from .._task.task import ListRecorder, Planned, Task
from .._task.validation import shown, validated

_VERBATIM = (".body", ".current")  # options in which a null is a value


def prepare_all(spec: ModuleSpec, params: Params, check_mode: bool = False) -> list[Task]:
    """Return the task of each item; raise InvalidInput with the faults of all items."""
    settings = settings_from(params, check_mode)
    in_range("concurrency", params["concurrency"], 1, MOST_AT_ONCE)
    in_range("max_unknown", params["max_unknown"])
    in_range("max_failures", params["max_failures"])
    given = {name: params[name] for name in ("force", *spec.shared)}
    faults = Faults(spec)
    tasks: list[Task] = []
    # The number of the first item, by its name or id.
    first: dict[str, int] = {}
    for number, item in enumerate(params[spec.option]):
        try:
            wanted = spec.sent.wanted({**validated_item(spec, item), **given})
        except ServicesError as error:
            faults.add(number, item, error.msg)
            continue
        if wanted.key in first:
            other = f"{spec.named(spec.option)}[{first[wanted.key]}]"
            faults.add(number, item, f"{spec.key}: is the same as that of {other}")
        first.setdefault(wanted.key, number)
        if wanted.fails_on_difference:
            wanted = replace(wanted, fails_on_difference=spec.named(wanted.fails_on_difference))
        tasks.append(Task(spec.sent, settings, wanted, is_listed=True))
    faults.raise_if_any()
    return tasks


def with_defaults(spec: ModuleSpec, params: Params) -> Params:
    """Return the options with `defaults` merged into each item; raise InvalidInput for faulty ones.

    Their faults come alone: each would be one of every item.
    """
    defaults = params["defaults"]
    if not defaults:
        return params
    options = {name: {**option, "required": False} for name, option in spec.item_options.items()}
    _valid, problems = validated(options, {}, defaults)
    if problems:
        raise InvalidInput("defaults", "; ".join(problems))
    return {**params, spec.option: [merged(defaults, item) for item in params[spec.option]]}


def merged(below: Any, above: Any, name: str = "") -> Any:
    """Return `above` merged over `below`; except within _VERBATIM, null counts as not given."""
    if above is None:
        return below
    if not isinstance(below, dict) or not isinstance(above, dict) or name in _VERBATIM:
        return above
    found = dict(below)
    for key, value in above.items():
        found[key] = merged(below.get(key), value, f"{name}.{key}")
    return found


def place_of(number: int, item: object) -> str:
    """Return the line of an item in a file, or its place in the list."""
    if isinstance(item, dict) and "line" in item:
        return f"line {item['line']}"
    return f"[{number}]"


class Faults:
    """Collects the faults of all items of a list, so that one error reports them."""

    def __init__(self, spec: ModuleSpec) -> None:
        self._spec = spec
        # The items that have a fault, by its text.
        self._items: dict[str, list[str]] = {}

    def add(self, number: int, item: object, msg: str) -> None:
        """Add a fault of one item; raise InvalidInput at once for a module without a list."""
        msg = printable(msg)  # names are any text
        if not self._spec.option:
            raise InvalidInput(msg)
        label = place_of(number, item)
        key = None
        if isinstance(item, dict):
            key = item.get(self._spec.key) or item.get("id")
        if key and isinstance(key, (str, int)):
            label = f"{label} ({for_message(str(key))})"
        self._items.setdefault(msg, []).append(label)

    def raise_if_any(self) -> None:
        """Raise InvalidInput if there are faults."""
        if not self._items:
            return
        count = len({item for items in self._items.values() for item in items})
        items_are = "item is" if count == 1 else "items are"
        faults = [f"{listing(items)}: {msg}" for msg, items in self._items.items()]
        told = listing(faults, MAX_FAULTS, "; ")
        raise InvalidInput(self._spec.option, f"{count:,} {items_are} invalid: {told}.")


def validated_item(spec: ModuleSpec, item: object) -> Params:
    """Return the options of one item; raise ServicesError with all its faults."""
    if not isinstance(item, dict):
        instead = (
            f"; write it as - {spec.key}: {for_message(item)}" if isinstance(item, str) else ""
        )
        raise ServicesError(f"must be a dict, not {shown(item)}{instead}")
    params, problems = validated(spec.item_options, spec.constraints, item)
    if problems:
        raise ServicesError("; ".join(problems))
    return params


def require_approved(
    planned: list[Planned],
    approved: Mapping[str, Json],
    secrets: Secrets,
    ledger: ListRecorder | None,
) -> None:
    """Raise InvalidInput unless each asset to send is approved and was not created since.

    `approved`: the bodies of the plan, by name or id, with masked credentials.
    """
    to_send = [
        (each.task, each.plan.body) for each in planned if each.plan and not each.plan.settled
    ]
    creations = [task for task, _body in to_send if task.resource.operation.method == "POST"]
    created = ledger.created_since_plan(creations) if ledger else set()
    faults = []
    for task, body in to_send:
        name = task.wanted.key
        if name in created:
            why = "it was created since the plan was made, and an approval is good for one creation"
        elif name not in approved:
            why = "the plan does not send it"
        else:
            why = _differing(secrets.scrub_data(body), approved[name])
        if why:
            faults.append(f"{for_message(name)}: {why}")
    if faults:
        assets_are = f"{quantity(len(faults), 'asset')} {'is' if len(faults) == 1 else 'are'}"
        told = f"{assets_are} not approved as listed now: {listing(faults, MAX_FAULTS, '; ')}"
        raise InvalidInput("approved", f"{told}. Make a new plan (--check) and have it approved")


def _differing(body: Json, approved: Json) -> str:
    """Return the fields whose JSON differs, with both values; '' if none does."""
    found = [
        f"{for_message(field)} ({for_message(now)} now, {for_message(then)} approved)"
        for field, now, then in json_differences(body, approved)
    ]
    return listing(found, MAX_FAULTS)
