# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Validates options, by the same rules and messages for every module, place and item of a list."""

from __future__ import annotations

import json
import os
import re
from copy import copy
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Callable, Iterable, Iterator, Mapping

from ansible.module_utils.common.validation import check_type_dict, check_type_list
from ansible.module_utils.parsing.convert_bool import boolean

from .._errors import InvalidInput, ServicesError
from .._fields import SECONDS, Params, number, text
from .._result import Result
from .._secrets import Secrets, is_credential_name, printable
from .credentials import secrets_of, shown_options
from .options import Option
from .specs import EXAMPLES, INSTEAD, Constraints, ModuleSpec

# Other surrogates are bytes of a name (PEP 383).
_IN_NO_PATH = re.compile("[\\0\ud800-\udc7f\udd00-\udfff]")
_AS_THEY_ARE: Mapping[str, str] = MappingProxyType({})
# Characters. A longer value is not cut off, since scrubbing cannot match half a secret.
_LONGEST_SHOWN = 100
_KINDS = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "a dict",
}


@dataclass(frozen=True)
class Options:
    """The options of one task: as given, as validated, and the secrets in them."""

    spec: ModuleSpec
    given: Params
    # All options of the module; an invalid value stays as it is given.
    params: Params
    secrets: Secrets
    problem: str  # all faults, not yet scrubbed; '' if there are none

    def valid(self) -> Params:
        """Return the validated options; raise InvalidInput if they are not valid."""
        if self.problem:
            raise InvalidInput(self.problem)
        return self.params

    def failed(self, error: ServicesError) -> Result:
        """Return the scrubbed result of the failed task."""
        if isinstance(error, InvalidInput):
            error = error.renamed(self.spec.named, self.spec.no_effect)
        return self.secrets.scrub(Result.of_error(error))

    def invocation(self) -> dict[str, Params]:
        """Return the options as results show them."""
        return {"module_args": shown_options(self.spec.without_items(self.params), self.secrets)}


def validate(spec: ModuleSpec, given: Params) -> Options:
    """Return the options of a task; `_list/items` validates the items of a list."""
    constraints = {} if spec.option else spec.constraints
    params, problems = validated(spec.options, constraints, given, names=spec.names)
    return Options(spec, given, params, secrets_of(spec.own, params), "; ".join(problems))


def validated(
    options: dict[str, Option],
    constraints: Constraints,
    given: Params,
    above: str = "",
    is_open: bool = False,
    names: Mapping[str, str] = _AS_THEY_ARE,
) -> tuple[Params, list[str]]:
    """Return all options of an argument spec, and all faults, each with the name of its option.

    Null means not given. `above`: the start of those names, such as `attributes.`; `is_open`:
    whether there may be other options; `names`: those by which the user gives the options.
    """
    problems: list[str] = []
    if not is_open:
        unknown = [name for name in given if name not in options]
        problems += _unknown(unknown, options, above)
    params: Params = {}
    for name, option in options.items():
        value = given.get(name)
        place = f"{above}{names.get(name, name)}"
        variable = variable_of(option) if value is None else ""
        if variable:
            value = os.environ[variable]
            place = variable
        if value is not None:
            params[name], faults = converted(option, value, name, place, is_open)
            problems += faults
            continue
        default = option.get("default")
        params[name] = None if default is None else copy(default)
        if option.get("required"):
            problems.append(_missing(place, option))
    problems += _conflicts(constraints, params)
    return params, problems


def variable_of(option: Option) -> str:
    """Return the environment variable that sets an option, '' if none does.

    It is the first one that is not empty, because AWX exports empty ones.
    """
    names = option["fallback"][1] if "fallback" in option else ()
    return next(filter(os.environ.get, names), "")


def _unknown(names: list[str], options: dict[str, Option], above: str) -> Iterator[str]:
    """Yield the faults of names that are no options, with the right ones."""
    attributes = options.get("attributes", {}).get("options", {})
    deeper = [name for name in names if name in attributes]
    if deeper:
        belong, them = ("belongs", "it") if len(deeper) == 1 else ("belong", "them")
        yield f"{' and '.join(deeper)} {belong} under attributes; indent {them}"
    for name in names:
        if name not in deeper:
            yield _no_option(f"{above}{name}", str(name), options)


def _no_option(place: str, name: str, options: dict[str, Option]) -> str:
    near = nearest(name, options)
    if not near and place in INSTEAD:
        return f"{place}: {INSTEAD[place]}"
    hint = f"did you mean {near}?" if near else f"there are {', '.join(sorted(options))}"
    return f"{printable(place)}: there is no such option ({hint})"


def nearest(name: str, names: Iterable[str]) -> str:
    """Return the name that was probably meant, '' if there is none.

    It is the shortest one with all the letters in their order, such as `virtual_machines` for
    `vms`, or a similar one.
    """
    lower = name.lower()
    longer = [each for each in names if len(name) > 2 and _has_letters(iter(each), lower)]
    similar = get_close_matches(lower, names, 1)
    return min(longer, key=len, default="") or "".join(similar)


def _has_letters(rest: Iterator[str], letters: str) -> bool:
    return all(letter in rest for letter in letters)


def _missing(place: str, option: Option) -> str:
    if "fallback" not in option:
        return f"{place}: is missing: set it"
    variable = option["fallback"][1][0]
    return f"{place}: is missing: set it, or the environment variable {variable}"


def _conflicts(constraints: Constraints, params: Params) -> Iterator[str]:
    for one, other in constraints.get("mutually_exclusive", ()):
        if params[one] is not None and params[other] is not None:
            yield f"{one}: cannot be given together with {other}"
    for names in constraints.get("required_one_of", ()):
        if all(params[name] is None for name in names):
            yield f"{', '.join(names)}: one of these is needed"
    for option, value, names in constraints.get("required_if", ()):
        for name in names:
            if params[option] == value and params[name] is None:
                yield f"{name}: is needed with {option}: {value}"


def converted(
    option: Option, value: Any, name: str, place: str, is_open: bool = False
) -> tuple[Any, list[str]]:
    """Return the value in the type of its option, and its faults, each with its `place`.

    Suboptions that are null are left out. If `is_open`, they are kept, and so are unknown ones.
    """
    try:
        value = _in_type(option, value)
    except (TypeError, ValueError) as error:
        return value, [f"{place}: {_wrong_type(option, name, value, error)}"]
    if option.get("elements"):
        return _converted_elements(option, value, name, place, is_open)
    if "options" in option:
        params, problems = validated(option["options"], {}, value, f"{place}.", is_open)
        in_order = (*value, *params)
        found = {key: params[key] for key in in_order if params.get(key) is not None}
        return {**value, **found} if is_open else found, problems
    if "choices" in option and value not in option["choices"]:
        return value, [f"{place}: {_no_choice(option, name, value)}"]
    return value, []


def _converted_elements(
    option: Option, elements: list[Any], name: str, place: str, is_open: bool
) -> tuple[list[Any], list[str]]:
    element = {**option, "type": option["elements"], "elements": None}
    values = []
    problems = []
    for index, part in enumerate(elements):
        value, faults = converted(element, part, name, f"{place}[{index}]", is_open)
        values.append(value)
        problems += faults
    return values, problems


def _no_choice(option: Option, name: str, value: object) -> str:
    choices = option["choices"]
    near = nearest(str(value), choices)
    hint = f". Did you mean {near}?" if near else ""
    return f"must be one of {', '.join(choices)}, not {_shown_of(option, name, value)}{hint}"


def _in_type(option: Option, value: Any) -> Any:
    """Return the value in the type of its option; raise TypeError or ValueError."""
    kind = "list of dicts" if option.get("elements") == "dict" else option["type"]
    if callable(kind):
        return kind(value)
    return value if value.__class__ is _PLAIN.get(kind) else _CONVERT[kind](value)


def _wrong_type(option: Option, name: str, value: object, error: Exception) -> str:
    seen = _shown_of(option, name, value)
    if option["type"] is SECONDS:
        return f"{seen} is not a number of seconds"
    expected = error if callable(option["type"]) else _NEEDS.get(option["type"], error)
    return f"{expected}{_such_as(option)}, not {seen}"


def _such_as(option: Option) -> str:
    """Return an example of a dict with suboptions, or of a list of them; '' for another option."""
    suboptions = option.get("options", {}).keys()
    for example in EXAMPLES:
        if example.keys() <= suboptions:
            members = ", ".join(f"{key}: {value}" for key, value in example.items())
            written = f"{{{members}}}"
            return f" such as [{written}]" if option.get("elements") else f" such as {written}"
    return ""


def _whole_number(value: object) -> int:
    found = number(value)
    if not isinstance(found, int):
        raise TypeError("must be a whole number")
    return found


def _path(value: object) -> str:
    """Return a path; raise ValueError for characters that no file name has."""
    path = os.path.expanduser(os.path.expandvars(text(value)))
    if _IN_NO_PATH.search(path):
        raise ValueError("must be without characters that no path can have")
    return path


def _list(value: Any) -> list[Any]:
    """Return a list; a text is split at commas, and its parts are stripped.

    ansible-core keeps the blanks, so that `base, nginx` would always name another class than
    `nginx`.
    """
    if isinstance(value, bool):
        raise TypeError
    if not isinstance(value, str):
        return list(check_type_list(value))
    return [part for part in map(str.strip, value.split(",")) if part]


def _list_of_dicts(value: object) -> list[object]:
    if not isinstance(value, list):  # parts of a text are no dicts
        raise TypeError
    return value


def _dict(value: Any) -> dict[Any, Any]:
    found = check_type_dict(value)
    if not isinstance(found, dict):  # a set, for example
        raise TypeError
    return found


# Values of these classes need no conversion.
_PLAIN = {"str": str, "bool": bool, "list": list, "dict": dict}
_CONVERT: dict[str, Callable[[Any], object]] = {
    "str": text,
    "bool": boolean,
    "int": _whole_number,
    "float": number,
    "path": _path,
    "list": _list,
    "list of dicts": _list_of_dicts,
    "dict": _dict,
}
# Why a value cannot be converted; the errors of the other types explain it.
_NEEDS = {"bool": "must be true or false", "dict": "must be a dict", "list": "must be a list"}


def _shown_of(option: Option, name: str, value: object) -> str:
    """Return a value for a message, or only its kind if it may be a credential."""
    return _kind(value) if option.get("no_log", is_credential_name(name)) else shown(value)


def shown(value: object) -> str:
    """Return a value for a message, or only its kind if it is long or has parts."""
    if isinstance(value, (list, dict)):
        return _kind(value)
    # `default` is for a date, or bytes.
    written = printable(json.dumps(value, ensure_ascii=False, default=str))
    return written if len(written) <= _LONGEST_SHOWN else _kind(value)


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "null")
