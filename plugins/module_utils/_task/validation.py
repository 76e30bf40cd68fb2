# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of a task, validated: the same rules and messages for every module and place, and
each item of a list.
"""

from __future__ import annotations

import json
import os
import re
from copy import copy
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Iterable, Iterator, Mapping

from ansible.module_utils.common.validation import check_type_dict, check_type_list
from ansible.module_utils.parsing.convert_bool import boolean

from .._errors import InvalidInput, ServicesError
from .._fields import SECONDS, number, text
from .._result import Result
from .._secrets import Secrets, is_credential_name, printable
from .credentials import secrets_of, shown_options
from .specs import EXAMPLES, INSTEAD, ModuleSpec

_IN_NO_PATH = re.compile(
    "[\\0\ud800-\udc7f\udd00-\udfff]"
)  # other surrogates are bytes of a name (PEP 383)
_AS_THEY_ARE: Mapping[str, str] = MappingProxyType({})
_LONGEST_SHOWN = (
    100  # characters; a longer value is not cut off, since scrubbing cannot match half a secret
)
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
    given: dict
    params: dict  # all options of the module; what is not valid stays as it is given
    secrets: Secrets
    problem: str  # everything that is wrong with them, not yet scrubbed; empty for valid ones

    def valid(self) -> dict:
        """Return the validated options; raise InvalidInput if they are not valid."""
        if self.problem:
            raise InvalidInput(self.problem)
        return self.params

    def failed(self, error: ServicesError) -> Result:
        """Return the scrubbed result of the failed task."""
        error = error.renamed(self.spec.named) if isinstance(error, InvalidInput) else error
        return self.secrets.scrub(Result.of_error(error))

    def invocation(self) -> dict:
        """Return the options as results show them."""
        return {"module_args": shown_options(self.spec.shown(self.params), self.secrets)}


def validate(spec: ModuleSpec, given: dict) -> Options:
    """Return the options of a task; the items of a list stay as they are given (`_list/items`
    validates them).
    """
    params, problems = validated(
        spec.options, {} if spec.option else spec.constraints, given, names=spec.names
    )
    return Options(spec, given, params, secrets_of(spec.own, params), "; ".join(problems))


def validated(
    options: dict,
    constraints: dict,
    given: dict,
    above: str = "",
    is_open: bool = False,
    names: Mapping = _AS_THEY_ARE,
) -> tuple[dict, list[str]]:
    """Return all options of an argument spec, and what is wrong with them, naming each option in
    full.

    Null means not given. `above`: the start of those names, such as `attributes.`; `is_open`:
    whether there may be others; `names`: of options that the user gives under other names.
    """
    problems = (
        [] if is_open else _unknown([name for name in given if name not in options], options, above)
    )
    params = {}
    for name, option in options.items():
        value, place = given.get(name), f"{above}{names.get(name, name)}"
        if value is None and (variable := variable_of(option)):
            value, place = os.environ[variable], variable
        if value is not None:
            params[name] = converted(option, value, name, place, problems, is_open)
            continue
        params[name] = copy(option["default"]) if "default" in option else None
        if option.get("required"):
            problems.append(_missing(place, option))
    problems += _conflicts(constraints, params)
    return params, problems


def variable_of(option: dict) -> str:
    """Return the environment variable that sets an option: the first one that is not empty, as AWX
    exports some.
    """
    return next(filter(os.environ.get, option["fallback"][1]), "") if "fallback" in option else ""


def _unknown(names: list[str], options: dict, above: str) -> list[str]:
    """Return what is wrong with names that are no options, and what to write instead."""
    deeper = [name for name in names if name in options.get("attributes", {}).get("options", {})]
    belong, them = ("belongs", "it") if len(deeper) == 1 else ("belong", "them")
    indent = [f"{' and '.join(deeper)} {belong} under attributes; indent {them}"] if deeper else []
    others = [name for name in names if name not in deeper]
    return [*indent, *(_no_option(f"{above}{name}", str(name), options) for name in others)]


def _no_option(place: str, name: str, options: dict) -> str:
    near = nearest(name, options)
    if not near and place in INSTEAD:
        return f"{place}: {INSTEAD[place]}"
    hint = f"did you mean {near}?" if near else f"there are {', '.join(sorted(options))}"
    return f"{printable(place)}: there is no such option ({hint})"


def nearest(name: str, names: Iterable[str]) -> str:
    """Return the name that was probably meant, empty if there is none.

    It is the shortest one with all the letters in their order, such as `virtual_machines` for
    `vms`, or a similar one.
    """
    longer = [each for each in names if len(name) > 2 and _has_letters(iter(each), name.lower())]
    return min(longer, key=len, default="") or next(
        iter(get_close_matches(name.lower(), names, 1)), ""
    )


def _has_letters(rest: Iterator[str], letters: str) -> bool:
    return all(letter in rest for letter in letters)


def _missing(place: str, option: dict) -> str:
    variable = (
        f", or the environment variable {option['fallback'][1][0]}" if "fallback" in option else ""
    )
    return f"{place}: is missing: set it{variable}"


def _conflicts(constraints: dict, params: dict) -> Iterator[str]:
    for one, other in constraints.get("mutually_exclusive", ()):
        if params[one] is not None and params[other] is not None:
            yield f"{one}: cannot be given together with {other}"
    for names in constraints.get("required_one_of", ()):
        if all(params[name] is None for name in names):
            yield f"{', '.join(names)}: one of these is needed"
    for option, value, names in constraints.get("required_if", ()):
        if params[option] == value:
            yield from (
                f"{name}: is needed with {option}: {value}"
                for name in names
                if params[name] is None
            )


def converted(
    option: dict, value: Any, name: str, place: str, problems: list[str], is_open: bool = False
) -> Any:
    """Return the value in the type of its option; what is wrong is added to `problems`.

    Suboptions that are null are left out, unless others may be given (`is_open`), which are then
    kept, too.
    """
    kind = "list of dicts" if option.get("elements") == "dict" else option["type"]
    try:
        if callable(kind):
            value = kind(value)
        elif value.__class__ is not _PLAIN.get(kind):
            value = _CONVERT[kind](value)
    except (TypeError, ValueError) as error:
        seen = _shown_of(option, name, value)
        is_time = option["type"] is SECONDS
        needs = f"{_NEEDS.get(option['type'], error)}{_such_as(option)}, not {seen}"
        why = f"{seen} is not a number of seconds" if is_time else needs
        problems.append(f"{place}: {why}")
        return value
    if option.get("elements"):
        element = {**option, "type": option["elements"], "elements": None}
        parts = enumerate(value)
        return [
            converted(element, part, name, f"{place}[{index}]", problems, is_open)
            for index, part in parts
        ]
    if "options" in option:
        params, wrong = validated(option["options"], {}, value, f"{place}.", is_open)
        problems += wrong
        found = {
            name: params[name] for name in (*value, *params) if params.get(name) is not None
        }  # in the order given
        return {**value, **found} if is_open else found
    if "choices" in option and value not in option["choices"]:
        problems.append(
            f"{place}: must be one of {', '.join(option['choices'])}, not {_shown_of(option, name, value)}"
        )
    return value


def _such_as(option: dict) -> str:
    """Return how a dict with suboptions, or a list of them, is written; empty for any other option."""
    example = next(
        (each for each in EXAMPLES if each.keys() <= option.get("options", {}).keys()), None
    )
    if not example:
        return ""
    written = f"{{{', '.join(f'{key}: {value}' for key, value in example.items())}}}"
    return f" such as [{written}]" if option.get("elements") else f" such as {written}"


def _whole_number(value: Any) -> int:
    found = number(value)
    if not isinstance(found, int):
        raise TypeError("must be a whole number")
    return found


def _path(value: Any) -> str:
    """Return a path; refuse characters that no file name has, for which Python's functions raise a
    ValueError.
    """
    path = os.path.expanduser(os.path.expandvars(text(value)))
    if _IN_NO_PATH.search(path):
        raise ValueError("must be without characters that no path can have")
    return path


def _list(value: Any) -> list:
    """Return a list; text has its parts between commas, without blanks around them and without
    parts of nothing else.

    ansible-core keeps the blanks, so that `base, nginx` would name another class than `nginx`, for
    ever.
    """
    if isinstance(value, bool):
        raise TypeError
    if not isinstance(value, str):
        return check_type_list(value)
    return [part for part in map(str.strip, value.split(",")) if part]


def _list_of_dicts(value: Any) -> list:
    if not isinstance(value, list):  # parts of a text are no dicts
        raise TypeError
    return value


def _dict(value: Any) -> dict:
    found = check_type_dict(value)
    if not isinstance(found, dict):  # but a set, perhaps
        raise TypeError
    return found


_PLAIN = dict(
    str=str, bool=bool, list=list, dict=dict
)  # values of these classes need no conversion
_CONVERT = {
    **dict(
        str=text, bool=boolean, int=_whole_number, float=number, path=_path, list=_list, dict=_dict
    ),
    "list of dicts": _list_of_dicts,
}


# What a value that cannot be converted must be; the other types say it themselves.
_NEEDS = {"bool": "must be true or false", "dict": "must be a dict", "list": "must be a list"}


def _shown_of(option: dict, name: str, value: Any) -> str:
    """Return the value of an option for a message, or only what it is where it may be a credential."""
    return _kind(value) if option.get("no_log", is_credential_name(name)) else shown(value)


def shown(value: Any) -> str:
    """Return a value for a message, or only what it is where that is long or has parts."""
    if isinstance(value, (list, dict)):
        return _kind(value)
    written = printable(json.dumps(value, ensure_ascii=False))
    return written if len(written) <= _LONGEST_SHOWN else _kind(value)


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), "null")
