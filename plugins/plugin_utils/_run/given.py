# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a task is given: its options as a module would get them, and its ledger."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, Mapping

import yaml

from ...module_utils._errors import InvalidInput
from ...module_utils._task.options import LEDGER_VARIABLE
from ...module_utils._task.signals import Signals
from ...module_utils._task.specs import ModuleSpec
from ...module_utils._task.validation import nearest
from .._ledger.location import absolute, no_ledger_yet, resolved
from .._ledger.store import Ledger
from .._screen.screen import waiting_line
from . import core
from .cache import cached_ledger, is_first, ledger_of_run
from .process import say

_FLEET, _PREFIX = (
    "infrastructure.services.fleet",
    "fleet_",
)  # the role, and the start of the names of its variables
_TAKES = "__variables"  # the variable of a playbook of the collection that has the names of all that it takes
_MISSPELT = 0.75  # how much a name has to be like another one to be taken for it, up to 1
_FILE = "__file"  # the variable of a playbook of the collection that has the path of the file which it was given
_ONLY_CHECKS = (
    "__only_checks"  # the variable of a task of the role that changes nothing, whatever it finds
)
_NO_LEDGER = (
    f"is missing: set it, or {LEDGER_VARIABLE} in the environment, to a path (an SQLite file) or a postgresql:// URL,"
    " so that running again is safe"
)


def options_given(action) -> dict:
    """Return the options as a module gets them; raise InvalidInput for what cannot be passed to
    one.
    """
    try:
        return json.loads(json.dumps(action._task.args, cls=core.ENCODER))
    except (TypeError, ValueError):
        problem = (
            "one contains a value that JSON cannot represent (binary data, a set, a huge number)"
        )
        raise InvalidInput("the options", problem) from None


def names_in_role(task_vars: dict, given: Iterable[str]) -> dict[str, str]:
    """Return the variables of the role `fleet` by the options that they set; none for a task that
    is no part of it.

    Raise InvalidInput for variables that the role or a playbook of the collection lacks or would
    ignore: Ansible takes any variable of any name. `given`: the names on the command line and in
    the play, of which others are for inventories.
    """
    takes, names, hints = task_vars.get(_TAKES, ()), {}, {}
    if task_vars.get("ansible_role_name") == _FLEET:
        specs = yaml.safe_load(
            Path(task_vars["role_path"], "meta/argument_specs.yml").read_text(encoding="utf-8")
        )
        names = {
            name.removeprefix(_PREFIX): name for name in specs["argument_specs"]["main"]["options"]
        }
        hints.update(_unknown_to_role(task_vars, names))
    hints.update(_unknown_to_playbook(set(given).difference(hints, names.values()), takes))
    if hints:
        raise InvalidInput(
            " ".join(f"{name}: there is no such variable; {hint}" for name, hint in hints.items())
        )
    return names


def _unknown_to_playbook(given: Iterable[str], takes: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the variables that look like those of a playbook and are none, each with a hint."""
    for name in sorted(given):
        near = get_close_matches(name, takes, 1, _MISSPELT)
        if near and name not in takes and not name.startswith("_"):
            yield name, f"did you mean {near[0]}?"


def _unknown_to_role(task_vars: dict, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the variables that look like those of the role and are none, each with a hint."""
    for name in sorted(set(task_vars).difference(names.values())):
        if name.startswith(_PREFIX):
            meant = names.get(nearest(name.removeprefix(_PREFIX), names))
            yield (
                name,
                f"did you mean {meant}?"
                if meant
                else f"there are {', '.join(sorted(names.values()))}.",
            )


def spec_in_role(spec: ModuleSpec, names: Mapping[str, str]) -> ModuleSpec:
    """Return the module with the names of the variables that set its options; `names`: from
    names_in_role.
    """
    own = (
        f"{spec.option.removesuffix('s')}_defaults"  # of this list, where the role has others, too
    )
    return replace(spec, names={**names, "defaults": names.get(own, names["defaults"])})


def with_absolute_paths(action, params: dict) -> dict:
    """Return valid options with absolute paths; raise InvalidInput for one in a collection."""
    names = [
        name
        for name, option in action.spec.options.items()
        if option["type"] == "path" and params[name]
    ]
    return {**params, **{name: absolute_path(action, name, params[name]) for name in names}}


def absolute_path(action, option: str, path: str) -> str:
    """Return the absolute path that an option of the task, or the variable that sets it, means;
    raise InvalidInput.
    """
    return absolute(
        option, path, action._loader.get_basedir(), action._task.args.get(option) is None
    )


def variable(action, name: str) -> Any:
    """Return a variable of the task, templated, which those in task_vars are not; None if there is
    none.
    """
    return action._templar.template(action.task_vars.get(name))


def only_checks(action) -> bool:
    """Whether a task of the role is there to find faults before the first request, and shows
    nothing.
    """
    return action._task.check_mode and bool(variable(action, _ONLY_CHECKS))


def file_of_playbook(action) -> str:
    """Return the absolute path of the file that a playbook of the collection was given, empty for
    none.

    No lookup knows the working directory, and a filter not where the playbook is. Raise
    InvalidInput.
    """
    given = variable(action, _FILE)
    return absolute("file", str(given), action._loader.get_basedir()) if given else ""


def ledger_given(action) -> Any:
    """Return the option `ledger` before it is validated; empty for none."""
    given = action._task.args.get("ledger")
    return os.environ.get(LEDGER_VARIABLE, "") if given is None else given


def require_ledger(action) -> None:
    """Raise InvalidInput for a task of the role without a ledger."""
    if action.spec.names and not ledger_given(action):
        raise InvalidInput(action.spec.named("ledger"), _NO_LEDGER)


def opened_ledger(
    action, params: dict, signals: Signals, read_only: bool, says: bool = True
) -> Ledger:
    """Return the ledger of a task for one asset or entry; raise InvalidInput, LedgerError or
    MissingLibrary.

    `says`: whether a line on the screen says that it is new, or was used elsewhere.
    """
    location = ledger_location(action, params["ledger"])
    ledger = ledger_at(action, location, params, signals, read_only, cached_ledger, says)
    ledger.database.interruptible = signals.raised
    return ledger


def ledger_at(
    action,
    location: str,
    params: dict,
    signals: Signals,
    read_only: bool,
    opener=ledger_of_run,
    says: bool = True,
) -> Ledger:
    """Return the ledger at a location, and say once in a run if it is new; raise as opened_ledger
    does.
    """
    with signals.raised():
        required_by = "" if params["ledger_create"] else action.spec.named("ledger_create")
        ledger = opener(location, read_only, required_by)
    if not action._task.no_log:
        ledger.say_waiting = lambda keys, entry: say(signals, waiting_line(keys, entry))
    if only_checks(action) or not says:
        return ledger
    if ledger.is_new and is_first(f"new: {location}"):
        new = f"{ledger.where} is a new ledger: nothing was recorded before"
        say(signals, no_ledger_yet(ledger) if read_only else new)
    if ledger.used_elsewhere and is_first(f"used elsewhere: {location}"):
        say(signals, ledger.used_elsewhere)
    return ledger


def edit_ledger(
    action, params: dict, signals: Signals, edit: Callable[[Ledger, bool], dict]
) -> dict:
    """Edit entries and return the result; raise as opened_ledger does, or what the edit raises.

    A ledger that does not exist is made only for an edit that is not refused and adds something.
    `edit`: takes the ledger, and whether to change nothing.
    """
    check_mode = action._task.check_mode
    if not check_mode:
        found = opened_ledger(action, params, signals, read_only=True, says=False)
        is_missing = not found.version
        if not is_missing or edit(found, True)["changed"]:
            return edit(opened_ledger(action, params, signals, read_only=False), False)
    return edit(opened_ledger(action, params, signals, read_only=True), True)


def ledger_location(action, ledger: str, option: str = "ledger") -> str:
    """Return where the ledger of an option is; raise InvalidInput or LedgerError."""
    if not ledger:
        raise InvalidInput("ledger", "is empty")
    if action._task.async_val:
        why = "cannot be combined with async: nothing would record how the task ended. Remove async"
        raise InvalidInput("ledger", why)
    return resolved(ledger, action._loader.get_basedir(), action._task.args.get(option) is None)
