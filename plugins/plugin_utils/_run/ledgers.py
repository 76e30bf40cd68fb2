# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger of a task: where it is, and how it is opened."""

from __future__ import annotations

import os

from ...module_utils._errors import InvalidInput
from ...module_utils._fields import Params
from .._ledger.entries import Entry, Key, Waiting
from .._ledger.location import no_ledger_yet, open_ledger, resolved
from .._ledger.sqlite import identity, require_same_file
from .._ledger.store import Ledger
from .._screen.screen import waiting_line
from .action import Action
from .display import say
from .run_memory import run_memory

# By process, location and read_only.
_ledgers: dict[tuple[int, str, bool], Ledger] = {}


def ledger_location(action: Action, ledger: str, option: str = "ledger") -> str:
    """Return where the ledger of an option is; raise InvalidInput."""
    if not ledger:
        raise InvalidInput(option, "is empty")
    if action.keywords.is_async:
        why = "cannot be combined with async: nothing would record how the task ended. Remove async"
        raise InvalidInput(option, why)
    is_from_environment = action.arguments.get(option) is None
    return resolved(ledger, action.playbook_directory, is_from_environment, option)


def open_own_ledger(action: Action, params: Params, location: str, read_only: bool) -> Ledger:
    """Open a ledger for this task alone; raise LedgerError or MissingLibrary."""
    with action.signals.raised():
        ledger = _open_for_run(location, read_only, requiring_option(action, params))
    ledger.wait_like(waiting_of(action))
    show_news(action, ledger, location, read_only)
    return ledger


def reused_ledger(
    action: Action, params: Params, read_only: bool, shows_news: bool = True
) -> Ledger:
    """Return the ledger of a task, which the next items of a loop reuse.

    Raise InvalidInput, LedgerError or MissingLibrary. `shows_news`: whether to show a line about a
    ledger that is new, was used elsewhere, or is older than it was.
    """
    location = ledger_location(action, params["ledger"])
    with action.signals.raised():
        ledger = ledger_of_process(location, read_only, requiring_option(action, params))
    ledger.wait_like(waiting_of(action))
    if shows_news:
        show_news(action, ledger, location, read_only)
    return ledger


def requiring_option(action: Action, params: Params) -> str:
    """Return the option that requires the ledger to exist, '' if it may be created."""
    return "" if params["ledger_create"] else action.spec.named("ledger_create")


def waiting_of(action: Action) -> Waiting:
    """Return how a task waits for others: a signal interrupts it, and a line names the assets."""

    def show(keys: list[Key], entry: Entry | None) -> None:
        action.say(waiting_line(keys, entry))

    return Waiting(action.signals.raised, show)


def show_news(action: Action, ledger: Ledger, location: str, read_only: bool) -> None:
    """Show once in a run that a ledger is new, was used elsewhere, or is older than it was."""
    if action.only_checks:
        return
    if ledger.is_new and run_memory().is_first(f"new: {location}"):
        new = f"{ledger.where} is a new ledger: nothing was recorded before"
        say(action.signals, no_ledger_yet(ledger) if read_only else new)
    if ledger.place_warning and run_memory().is_first(f"used elsewhere: {location}"):
        say(action.signals, ledger.place_warning)


def ledger_of_process(location: str, read_only: bool, required_by: str) -> Ledger:
    """Return the open ledger of this process; raise LedgerError or MissingLibrary.

    A ledger that was inherited through fork() belongs to the parent. One that does not exist yet is
    not kept, because others may create it.
    """
    key = (os.getpid(), location, read_only)
    if key in _ledgers:
        return _ledgers[key]
    ledger = _open_for_run(location, read_only, required_by)
    if ledger.version:
        _ledgers[key] = ledger
    else:
        ledger.close()
    return ledger


def _open_for_run(location: str, read_only: bool, required_by: str) -> Ledger:
    """Open a ledger, unless this run used another file there; raise LedgerError or MissingLibrary."""
    before = run_memory().read(location)
    if before:
        require_same_file(location, tuple(before))
    ledger = open_ledger(location, read_only, required_by)
    now = identity(location)
    if now:
        run_memory().write(location, now)
    return ledger
