# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The items of a list: each is validated like the options of the single module, and all faults are reported at once."""

from __future__ import annotations

import json
import math
from typing import Any, Iterable

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.errors import AnsibleValidationError, NoLogError, SubParameterTypeError, UnsupportedError

from .._errors import InvalidInput, ServicesError, listing
from .._resources.plural import Plural
from .._task.options import MANY, MOST_AT_ONCE, settings_from
from .._task.task import Task, meant, readable

_MAX_FAULTS = 100  # faults in one message
_VERBATIM = (".body", ".current")  # options in which a null is a value


class _NotPlain(Exception):
    """A value that ansible-core has to convert or refuse."""


_own: dict[tuple[str, bool], dict] = {}


def own_options(plural: Plural, with_items: bool) -> dict:
    """Return the argument spec of a module for a list, without the shared options; always the same object."""
    options = plural.options if with_items else plural.plain_options
    return _own.setdefault((plural.name, with_items), {**options, **MANY})


def prepare_all(plural: Plural, params: dict) -> list[Task]:
    """Return the task of each item; raise InvalidInput with the faults of all items."""
    settings, items = settings_from(params), Items(plural)
    require_range("concurrency", params["concurrency"], 1, MOST_AT_ONCE)
    require_range("max_unknown", params["max_unknown"], 0)
    require_range("max_failures", params["max_failures"], 0)
    given = {name: params[name] for name in ("force", *plural.shared)}
    tasks, faults, first = [], Faults(plural), {}
    for number, item in enumerate(params[plural.option]):
        try:
            wanted = plural.resource.read({**items.validated(item), **given})
        except ServicesError as error:
            faults.add(number, item, error.msg)
            continue
        if wanted.key in first:
            faults.add(number, item, f"{plural.key}: is the same as that of {plural.option}[{first[wanted.key]}]")
        first.setdefault(wanted.key, number)
        tasks.append(Task(plural.resource, settings, wanted, is_listed=True))
    faults.raise_if_any()
    return tasks


def with_defaults(plural: Plural, params: dict) -> dict:
    """Return the options with `defaults` merged into each item."""
    defaults, given = params["defaults"], params[plural.option]
    return {**params, plural.option: [_merged(defaults, item) for item in given]} if defaults else params


def _merged(below: Any, above: Any, name: str = "") -> Any:
    """Return `above` merged over `below`, recursing into dicts; null counts as not given, except within _VERBATIM."""
    if isinstance(below, dict) and isinstance(above, dict) and name not in _VERBATIM:
        return {**below, **{key: _merged(below.get(key), value, f"{name}.{key}") for key, value in above.items()}}
    return below if above is None else above


def require_range(option: str, value: int, least: int, most: float = math.inf) -> None:
    """Raise InvalidInput for a number out of range."""
    if not least <= value <= most:
        raise InvalidInput(option, f"must be from {least} to {most}" if most < math.inf else f"must be {least} or more")


class Faults:
    """What is wrong with the items of a list, gathered so that all of it is reported at once."""

    def __init__(self, plural: Plural) -> None:
        self._plural = plural
        self._items: dict[str, list[str]] = {}  # by fault, the items that have it

    def add(self, number: int, item: Any, msg: str) -> None:
        """Add a fault of one item."""
        key = item.get(self._plural.key) if isinstance(item, dict) else None
        label = f"[{number}] ({key})" if key and isinstance(key, (str, int)) else f"[{number}]"
        self._items.setdefault(msg, []).append(label)

    def raise_if_any(self) -> None:
        """Raise InvalidInput if there are faults."""
        if not self._items:
            return
        count, more = sum(map(len, self._items.values())), len(self._items) - _MAX_FAULTS
        told = "; ".join(f"{listing(items)}: {msg}" for msg, items in list(self._items.items())[:_MAX_FAULTS])
        invalid = f"{count:,} {'item is' if count == 1 else 'items are'} invalid, so nothing was sent: {told}."
        raise InvalidInput(self._plural.option, f"{invalid} And {more:,} more faults." if more > 0 else invalid)


class Items:
    """Validates items, one after the other.

    ansible-core takes more than a millisecond per item, mostly to copy the argument spec. So values that need no
    conversion are used as they are, and everything else is left to ansible-core.
    """

    def __init__(self, plural: Plural) -> None:
        self._options, self._constraints = plural.item_options, plural.resource.constraints
        self._key = plural.key
        defaults = {name: option.get("default") for name, option in self._options.items()}
        self._empty = [name for name, default in defaults.items() if isinstance(default, dict)]
        self._defaults = {name: default for name, default in defaults.items() if name not in self._empty}
        self._validator: ArgumentSpecValidator | None = None

    def validated(self, item: Any) -> dict:
        """Return the options of one item; raise ServicesError for what ansible-core refuses."""
        try:
            return {**self._defaults, **{name: {} for name in self._empty}, **self._plain_item(item)}
        except _NotPlain:
            return self._by_ansible(item)

    def _plain_item(self, item: Any) -> dict:
        plain = _plain_dict(self._options, item)
        if any(option.get("required") and name not in plain for name, option in self._options.items()):
            raise _NotPlain
        for names in self._constraints.get("required_one_of", ()):
            if not any(name in item for name in names):
                raise _NotPlain
        for names in self._constraints.get("mutually_exclusive", ()):
            if sum(name in item for name in names) > 1:
                raise _NotPlain
        return plain

    def _by_ansible(self, item: Any) -> dict:
        if not isinstance(item, dict):
            instead = f"; write it as - {self._key}: {item}" if isinstance(item, str) else ""
            raise ServicesError(f"must be a dict, not {json.dumps(item, ensure_ascii=False)}{instead}")
        self._validator = self._validator or ArgumentSpecValidator(self._options, **self._constraints)
        result = self._validator.validate(readable(self._options, item))
        if result.error_messages:
            raise ServicesError("; ".join(_problems(result.errors)).rstrip("."))
        return result.validated_parameters


def _problems(errors: Iterable[AnsibleValidationError]) -> list[str]:
    """Return each fault once: ansible-core reports a wrong value with suboptions up to three times."""
    telling = [error for error in errors if not isinstance(error, (NoLogError, SubParameterTypeError))]
    return [f"{'unsupported: ' * isinstance(error, UnsupportedError)}{meant(error.msg)}" for error in telling or errors]


def _plain_dict(options: dict, value: Any) -> dict:
    """Return the options that a dict gives; raise _NotPlain."""
    if value.__class__ is not dict or not options.keys() >= value.keys():
        raise _NotPlain
    given = {name: item for name, item in value.items() if item is not None or "choices" in options[name]}
    return {name: _plain(options[name], item) for name, item in given.items()}


def _plain(option: dict, value: Any) -> Any:
    if value not in option.get("choices", (value,)):
        raise _NotPlain
    kind = option["type"]
    if kind == "dict":
        return _plain_dict(option["options"], value) if "options" in option else _of_type(dict, value)
    if kind == "list":
        element = {**option, "type": option["elements"]}
        return [_plain(element, each) for each in _of_type(list, value)]
    if not callable(kind):
        return _of_type(_TYPES.get(kind), value)
    try:
        return kind(value)
    except (TypeError, ValueError):
        raise _NotPlain from None


_TYPES = {"bool": bool, "str": str}


def _of_type(kind: type | None, value: Any) -> Any:
    if value.__class__ is not kind:
        raise _NotPlain
    return value


def labels(tasks: Iterable[Task]) -> list[str]:
    """Return the names or ids of tasks."""
    return [task.wanted.key for task in tasks]
