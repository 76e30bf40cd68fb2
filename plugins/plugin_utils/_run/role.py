# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The variables of the role `fleet` and of the playbooks of the collection."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Iterable, Iterator, Mapping

import yaml

from ...module_utils._errors import InvalidInput
from ...module_utils._task.specs import ModuleSpec
from ...module_utils._task.validation import nearest

# Variables of a task in the role or in a playbook:
FILE = "__file"  # the file that the playbook was given
# Between the cells of that file, empty for the default.
DELIMITER = "__delimiter"
REPORTS = "__reports"  # the reports that the playbook was given
# The task finds faults before the first request, and shows nothing.
ONLY_CHECKS = "__only_checks"
SHOWS_TABLE = "__shows_table"  # the task shows a table instead of JSON
_TAKES = "__variables"  # the names of all variables that the playbook takes

# What a playbook over the role takes besides the variables of the role, and has one value.
_SHARED = ("base_url", "access_token", "ledger", "ledger_create")

_FLEET = "infrastructure.services.fleet"
_PREFIX = "fleet_"  # of the names of its variables
# From which on a name is like another one, and from which on it is another one with a typo; at most 1.
_SIMILARITY, _TYPO = 0.75, 0.9
# Playbooks that take no `ledger_create` may share a command line with others.
_OF_OTHERS = "ledger_create"
# Words that people add to the name of a variable.
_FILLERS = ("db", "file", "id", "path", "uri", "url")


def names_in_role(task_vars: Mapping[str, Any], given: Iterable[str]) -> dict[str, str]:
    """Return the variables of the role `fleet` by the options that they set, none outside of it.

    Raise InvalidInput for variables that the role or a playbook of the collection lacks or would
    ignore: Ansible takes any variable of any name. `given`: the names on the command line and in
    the play, of which others are for inventories.
    """
    names: dict[str, str] = {}
    hints: dict[str, str] = {}
    if task_vars.get("ansible_role_name") == _FLEET:
        names = _names_of_role(task_vars["role_path"])
        hints.update(_unknown_to_role(task_vars, names))
    others = set(given).difference(hints, names.values())
    hints.update(_unknown_to_playbook(others, task_vars.get(_TAKES, ())))
    if hints:
        problems = [f"{name}: there is no such variable; {hint}" for name, hint in hints.items()]
        raise InvalidInput(" ".join(problems))
    return names


def shared_names(task_vars: Mapping[str, Any], names: Mapping[str, str]) -> set[str]:
    """Return the variables that a playbook over the role uses for all hosts, none outside of it.

    `names`: the variables of the role by their options.
    """
    takes = set(task_vars.get(_TAKES, ()))
    return {*names.values(), *takes.intersection(_SHARED)} if names and takes else set()


def _names_of_role(directory: str) -> dict[str, str]:
    text = Path(directory, "meta/argument_specs.yml").read_text(encoding="utf-8")
    variables = yaml.safe_load(text)["argument_specs"]["main"]["options"]
    return {name.removeprefix(_PREFIX): name for name in variables}


def _unknown_to_playbook(given: Iterable[str], takes: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield unknown variables that look like those of a playbook, each with a hint."""
    for name in sorted(set(given).difference(takes)):
        meant = "" if name.startswith("_") else _meant(name, takes)
        if meant:
            yield name, f"did you mean {meant}?"


def _meant(name: str, takes: Iterable[str]) -> str:
    """Return the variable of a playbook that an unknown name looks like, '' if there is none.

    It may be misspelled, longer (`url_path`), shorter (`attributes`), or have another beginning
    (`vm_attributes`). Any name of a ledger is one: without its ledger, a playbook creates again.
    """
    typo = get_close_matches(name, takes, 1, _TYPO)
    words = name.lower().split("_")
    if "ledger" in words and "ledger" in takes:
        return "" if name == _OF_OTHERS else (typo or [_ledger(words, takes)])[0]
    others = [known for known in takes if _has_words_of(words, known.split("_"))]
    near = typo or others or get_close_matches(name, takes, 1, _SIMILARITY)
    return near[0] if near else ""


def _ledger(words: Iterable[str], takes: Iterable[str]) -> str:
    return "ledger_create" if "create" in words and "ledger_create" in takes else "ledger"


def _has_words_of(words: list[str], known: list[str]) -> bool:
    """Return whether the words of an unknown name are those of a known one, but for a few."""
    is_longer = words[:-1] == known and words[-1] in _FILLERS
    is_shorter = set(words) <= set(known)
    has_other_beginning = 1 < len(words) < len(known) and words[-1] == known[-1]
    return is_longer or is_shorter or has_other_beginning


def _unknown_to_role(
    task_vars: Iterable[str], names: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield unknown variables that look like those of the role, each with a hint."""
    known = sorted(names.values())
    for name in sorted(set(task_vars).difference(known)):
        if not name.startswith(_PREFIX):
            continue
        near = nearest(name.removeprefix(_PREFIX), names)
        hint = f"did you mean {names[near]}?" if near else f"there are {', '.join(known)}."
        yield name, hint


def spec_in_role(spec: ModuleSpec, names: Mapping[str, str]) -> ModuleSpec:
    """Return the module with the variables of the role that set its options."""
    # Each list of the role has defaults of its own.
    own_defaults = f"{spec.option.removesuffix('s')}_defaults"
    defaults = names.get(own_defaults, names["defaults"])
    return replace(spec, names={**names, "defaults": defaults})
