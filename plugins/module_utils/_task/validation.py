# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Validates options, and names the place of each fault.

The messages of ansible-core's validator name no place in a list and quote values. So each option,
element and suboption is converted and named here first. The validator finds faults across options.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Iterable, Iterator, Mapping

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from .._errors import InvalidInput, ServicesError
from .._resources.planning import Constraints
from .._result import Result
from .._secrets import Secrets, printable
from .._values import Option, Params, Spec, shown
from .options import ARGUMENT_SPEC, NO_LEDGER, URLS, credentials_in, variable_of, variables_of
from .specs import ModuleSpec

# How to set an option that is missing.
_HOW = {
    "ledger": (
        ", to an absolute path or a postgresql:// URL. The word none says that there is no ledger,"
        " so that each run creates another asset"
    )
}


@dataclass(frozen=True)
class Options:
    """The options of one task, validated, and the secrets in them."""

    spec: ModuleSpec
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


def validate(spec: ModuleSpec, given: Params) -> Options:
    """Return the options of a task; `_list/items` validates the items of a list."""
    params, problems = validated(spec.options, spec.constraints, given, spec.names)
    secrets = Secrets(credentials_in(params))
    if spec.choose:
        params["ledger"] = NO_LEDGER
    # Masking would change what has a credential in it.
    parts: Params = {
        spec.named(name): params[name] for name in spec.own.keys() - {*URLS, *spec.paths}
    }
    if spec.operation:
        operation = spec.operation
        names = [operation.path, operation.resource.name]
        parts["the interface"] = [names, spec.own, spec.item_options]
    problems += [
        f"{place}: contains a credential of this task, which results, reports and the ledger would"
        " mask; take it out, or use another credential"
        for place, part in parts.items()
        if secrets.is_in(part)
    ]
    return Options(spec, params, secrets, "; ".join(problems))


def validated(
    options: Spec,
    constraints: Constraints,
    given: Params,
    names: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Params, list[str]]:
    """Return all options of an argument spec, and all faults, each with the name of its option.

    Null means not given. `names`: those by which the user gives the options.
    """
    faults = [*_unknown(given, options, "")]
    params: Params = {}
    for name, option in options.items():
        place = names.get(name, name)
        value = given.get(name)
        if value == "" and name in ARGUMENT_SPEC:  # as of a template that found nothing
            value = None
        variable = variable_of(name)
        if value is None and variable:
            place, value = variable, os.environ[variable]
        if value is None:
            value = option.get("default")
        if value is not None:
            value = _converted(option, value, place, faults)
        elif option.get("required"):
            others = variables_of(name)
            hint = f", or the environment variable {others[0]}" if others else ""
            faults.append(f"{place}: is missing: set it{hint}{_HOW.get(name, '')}")
        params[name] = value
    # Only faults across options are left. There, of other values than texts only presence counts.
    present = {
        name: isinstance(value, str) and value
        for name, value in params.items()
        if value is not None
    }
    spec = {name: {"type": "raw"} for name in options}
    result = ArgumentSpecValidator(spec, **constraints).validate(present)
    return params, faults + result.error_messages


def _converted(
    option: Option, value: Any, place: str, faults: list[str], is_open: bool = False
) -> Any:
    """Return a value in the type of its option, or as it is after adding its faults.

    `is_open`: whether dicts may have further keys.
    """
    try:
        value = option["type"](value)
    except TypeError as error:
        faults.append(f"{place}: {error}")
        return value
    if option.get("elements"):
        element = {**option, "type": option["elements"], "elements": None}
        return [
            _converted(element, part, f"{place}[{index}]", faults, is_open)
            for index, part in enumerate(value)
        ]
    if "options" in option:
        inner = option["options"]
        if not is_open:
            faults += _unknown(value, inner, f"{place}.")
        return {
            name: part
            if part is None or name not in inner
            else _converted(inner[name], part, f"{place}.{name}", faults, is_open)
            for name, part in value.items()
        }
    if value not in option.get("choices", [value]):
        choices = ", ".join(option["choices"])
        faults.append(f"{place}: must be one of {choices}, not {shown(value)}")
    return value


def converted(option: Option, value: Any, place: str, is_open: bool = False) -> Any:
    """Return a value in the type of its option; raise InvalidInput.

    `place`: how messages name it; `is_open`: whether dicts may have further keys.
    """
    faults: list[str] = []
    value = _converted(option, value, place, faults, is_open)
    if faults:
        raise InvalidInput("; ".join(faults))
    return value


def _unknown(names: Iterable[str], options: Spec, above: str) -> Iterator[str]:
    """Yield the faults of names that are no options, with the right ones."""
    attributes = options.get("attributes", {}).get("options", {})
    for name in [name for name in names if name not in options]:
        near = nearest(str(name), options)
        hint = f"did you mean {near}?" if near else f"there are {', '.join(sorted(options))}"
        fault = f"there is no such option ({hint})"
        if name in attributes:
            fault = "belongs under attributes; indent it"
        yield f"{printable(f'{above}{name}')}: {fault}"


def nearest(name: str, names: Iterable[str]) -> str:
    """Return the name that was probably meant, a longer or a similar one, '' if there is none."""
    lower = name.lower()
    longer = [other for other in names if len(lower) > 2 and lower in other]
    return min(longer or get_close_matches(lower, names, 1), key=len, default="")
