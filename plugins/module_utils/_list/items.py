# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The items of a list, validated as the options of the module for one asset are.

All faults are reported at once, before anything is sent.
"""

from __future__ import annotations

from typing import Any, Mapping

from .._call.sending import Settings
from .._errors import MAX_FAULTS, InvalidInput, ServicesError, listing, quantity
from .._resources.planning import ADOPT, SEND, Task
from .._result import Result
from .._secrets import for_message, printable
from .._task.specs import ModuleSpec
from .._task.validation import Options, validated
from .._values import Params, differences, shown


def prepare_all(options: Options, settings: Settings) -> list[Task]:
    """Return the task of each item; raise InvalidInput with the faults of all items."""
    spec, params = options.spec, options.params
    given = {name: params[name] for name in spec.sent.options if name in params}
    faults = Faults(spec)
    tasks: list[Task] = []
    numbers: dict[str, int] = {}  # by name or id
    items = [merged(params["defaults"], item) for item in params[spec.option]]
    for number, item in enumerate(items):
        try:
            task = spec.sent.task({**validated_item(spec, item), **given}, settings)
            first = numbers.setdefault(task.key, number)
            if first != number:
                other = f"{spec.named(spec.option)}[{first}]"
                raise InvalidInput(spec.key, f"is the same as that of {other}")
            tasks.append(task)
        except ServicesError as error:
            faults.add(number, item, error.msg)
    faults.raise_if_any()
    return tasks


def require_plans(spec: ModuleSpec, tasks: list[Task]) -> None:
    """Raise InvalidInput with the faults of all items that have no plan because of their options."""
    faults = Faults(spec)
    for number, task in enumerate(tasks):
        if isinstance(task.plan.error, InvalidInput):
            faults.add(number, {spec.key: task.key}, task.plan.error.msg)
    faults.raise_if_any()


def require_approved(tasks: list[Task], approved: Mapping[str, Result]) -> None:
    """Raise InvalidInput unless each asset to send is approved with the same body.

    `approved`: the rows of the plan that have an effect, by name or id.
    """
    faults = []
    for task in tasks:
        if task.plan.action not in (SEND, ADOPT):
            continue
        why = "the plan does not send it"
        if task.key in approved:
            found = differences(task.plan.body, approved[task.key].body, both=True)
            how = "{wanted} now, {found} approved"
            why = listing([printable(field.describe(how)) for field in found], MAX_FAULTS)
        if why:
            faults.append(f"{for_message(task.key)}: {why}")
    if faults:
        raise InvalidInput(
            "approved",
            f"the plan does not match {quantity(len(faults), 'asset')} of this list:"
            f" {listing(faults, MAX_FAULTS, '; ')}. Make a new plan (--check) and have it approved",
        )


def merged(below: Any, above: Any) -> Any:
    """Return `above` merged over `below`; null counts as not given."""
    if above is None:
        return below
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    return {**below, **{key: merged(below.get(key), value) for key, value in above.items()}}


def place_of(number: int, item: object) -> str:
    """Return the line of an item in a file, or its place in the list."""
    if isinstance(item, dict) and "line" in item:
        return f"line {item['line']}"
    return f"[{number}]"


class Faults:
    """Collects the faults of all items of a list, so that one error reports them."""

    def __init__(self, spec: ModuleSpec, is_list: bool = True) -> None:
        self._spec = spec
        self._is_list = is_list
        # The items that have a fault, by its text.
        self._items: dict[str, list[str]] = {}

    def add(self, number: int, item: object, msg: str) -> None:
        """Add a fault of one item; raise InvalidInput at once for one that is in no list."""
        msg = printable(msg)  # names are any text
        if not self._is_list:
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
        faults = [f"{listing(items)}: {msg}" for msg, items in self._items.items()]
        told = f"{quantity(count, 'invalid item')}: {listing(faults, MAX_FAULTS, '; ')}"
        raise InvalidInput(self._spec.option, f"{told}.")


def validated_item(spec: ModuleSpec, item: object) -> Params:
    """Return the options of one item; raise ServicesError with all its faults."""
    if not isinstance(item, dict):
        raise ServicesError(f"must be a dict with the option {spec.key}, not {shown(item)}")
    params, problems = validated(spec.item_options, spec.item_constraints, item)
    if problems:
        raise ServicesError("; ".join(problems))
    return params
