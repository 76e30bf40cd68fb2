"""Runs a module in this process as a target host does: JSON arguments in, printed result out."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable

import pytest
from ansible.module_utils import basic
from ansible.module_utils.common import parameters, warnings
from ansible_collections.infrastructure.services.plugins.module_utils._list.lists import send_list
from ansible_collections.infrastructure.services.plugins.module_utils._task.module import (
    run_module as run_module_of,
)

from support import SPECS


def run_module(resource: str, options: dict, **how) -> dict:
    """Return the result that the module prints; `how`: the keyword arguments of `printed`."""
    return printed(lambda: run_module_of(SPECS[resource]), options, **how)


def run_plural(plural, options: dict, **how) -> dict:
    """Return the result that a plural module prints; `how`: the keyword arguments of `printed`."""
    return printed(lambda: run_module_of(plural, send_list), options, **how)


def printed(
    main: Callable[[], None],
    options: dict,
    *,
    check_mode: bool = False,
    diff: bool = False,
    verbosity: int = 0,
) -> dict:
    """Return what a module prints; `verbosity`: the number of -v."""
    internal = {
        "_ansible_check_mode": check_mode,
        "_ansible_diff": diff,
        "_ansible_verbosity": verbosity,
    }
    if (
        "inject_invocation" in parameters.PASS_VARS
    ):  # since ansible-core 2.21; before, it always did
        internal["_ansible_inject_invocation"] = True
    arguments = json.dumps({"ANSIBLE_MODULE_ARGS": {**options, **internal}}).encode()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as said:
        patch.setattr(basic, "_ANSIBLE_ARGS", arguments)
        patch.setattr(
            basic, "_ANSIBLE_PROFILE", "legacy", raising=False
        )  # ansible-core 2.19 and later
        if hasattr(
            warnings, "_internal"
        ):  # since 2.19 warnings go elsewhere once controller code is loaded
            patch.setattr(warnings._internal, "is_controller", False)
        # ansible-core keeps these for the lifetime of the process, which elsewhere is that of a
        # single module
        for kept in ("_global_warnings", "_global_deprecations"):
            patch.setattr(warnings, kept, type(getattr(warnings, kept))())
        with pytest.raises(SystemExit):
            main()
    return json.loads(said.getvalue())
