# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the ledger makes of a task: begin, run, finish.

An entry is in one of four states. `intent`: a request is on its way, or was when its process died. `done`: it was
accepted and the envelope is known. `accepted`: it was accepted and the envelope was lost. `unknown`: nobody knows.
docs/ledger.md draws the moves between them.
"""

from __future__ import annotations

import time
from types import ModuleType
from typing import Any, Callable

from ...module_utils._errors import ACCEPTED, NOT_SENT, REJECTED, UNKNOWN, ServicesError
from ...module_utils._http.urls import canonical_url
from ...module_utils._resources.flow import Plan, Recorded
from ...module_utils._secrets import scrub
from ...module_utils._task.options import settings_from
from .entries import ABSENT, DONE, INTENT, Change, Ended, Entry, Key, LedgerError, author
from .store import Ledger

SEND, COMPARE, REFUSE = "send", "compare", "refuse"

# What a task does when it finds an entry (None: no entry). A creation must not be repeated, an update may be.
# With `force` everything is sent.
ON_FINDING = {
    None: {"POST": SEND, "PUT": SEND},
    INTENT: {"POST": REFUSE, "PUT": SEND},
    DONE: {"POST": COMPARE, "PUT": COMPARE},
    ACCEPTED: {"POST": REFUSE, "PUT": SEND},
    UNKNOWN: {"POST": REFUSE, "PUT": SEND},
}

# What the outcome of a request, and whether its envelope came back, make of the entry. None: as it was before.
AFTER = {
    (ACCEPTED, True): DONE,
    (ACCEPTED, False): ACCEPTED,
    (UNKNOWN, False): UNKNOWN,
    (REJECTED, False): None,
    (NOT_SENT, False): None,
}

# What is known of a creation whose entry is in this state.
_KNOWN = {INTENT: UNKNOWN, UNKNOWN: UNKNOWN, ACCEPTED: ACCEPTED}


class Undecided(ServicesError):
    """An earlier task may have created the asset already."""

    def __init__(self, key: Key, entry: Entry, noun: str) -> None:
        self.outcome = _KNOWN[entry.state]
        how = (
            "the service accepted it, but its answer was lost"
            if entry.state == ACCEPTED
            else "how it ended is not known"
        )
        super().__init__(
            f"The ledger says that a task began to create the {noun} {key.name} at {entry.began_at}; {how}."
            " Look for it on the service, then either confirm it with infrastructure.services.ledger_entry"
            " (state: present and its asset), or remove the entry with the same module (state: absent) so that"
            " this task creates it, or set force: true to create it all the same."
        )

    def result(self) -> dict:
        """The failed task, which changed nothing itself."""
        return dict(super().result(), changed=False)


class Overtaken(ServicesError):
    """Somebody else began with the asset at the same moment; nothing was sent."""

    def __init__(self, key: Key, noun: str) -> None:
        super().__init__(
            f"Another task began to work on the {noun} {key.name} at the same moment, so this one sent nothing."
            " Run it again when the other one has ended."
        )


def booked(
    ledger: Ledger,
    resource: ModuleType,
    params: dict,
    check_mode: bool,
    secrets: set[str],
    execute: Callable[[Recorded | None], dict[str, Any]],
    run: str = "",
) -> dict[str, Any]:
    """Run a task by the book and return its result; raise InvalidInput, LedgerError or Undecided before it sends.

    `execute`: runs the task, given what is recorded of the asset; `secrets`: what must not be written down;
    `run`: names the ansible run.
    """
    settings = settings_from(params)
    plan = resource.plan({**params, "send": "given"})  # what to send of a known asset is seen below
    plan.encoded()
    key = Key(canonical_url(settings.base_url), plan.operation.resource, plan.key)
    if check_mode:
        return execute(_decide(ledger.get(key), key, plan, params["force"]))
    with ledger.hold(key):
        before = ledger.get(key)
        recorded = _decide(before, key, plan, params["force"])
        if resource.plan(params, recorded).settled:
            return execute(recorded)
        asset = before.asset if before else {}
        intent = ledger.begin(key, Entry(INTENT, scrub(plan.body, secrets), asset, by=author(), run=run), before)
        if intent is None:
            raise Overtaken(key, plan.operation.noun)
        started = time.monotonic()
        result = execute(recorded)
        return _finish(ledger, Change(key, before, intent), result, time.monotonic() - started)


def _decide(entry: Entry | None, key: Key, plan: Plan, force: bool) -> Recorded | None:
    """Return what is recorded where it can be relied on, None to send; raise Undecided."""
    method = plan.operation.method
    found = ON_FINDING[entry.state if entry else None][method]
    if found == REFUSE and not force:
        raise Undecided(key, entry, plan.operation.noun)
    if found == COMPARE and not (force and method == "POST"):
        return Recorded(entry.sent, entry.asset)
    return None


def _finish(ledger: Ledger, begun: Change, result: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Write down how it ended; when that fails the task fails, with all that came back in its result.

    This need not outlive a power failure: what is left then is the intent, and the next task asks.
    """
    before, intent = begun.before, begun.after
    outcome, asset = result.get("outcome", UNKNOWN), result.get("asset")  # a module that crashed says nothing
    state = AFTER.get((outcome, asset is not None), UNKNOWN)  # a token such as `t` is scrubbed from the word
    after = before
    if state:
        after = intent._replace(state=state, asset=intent.asset if asset is None else asset, changed_at="")
    ended = Ended(
        from_state=before.state if before else ABSENT,
        to_state=after.state if after else ABSENT,
        by=intent.by,
        run=intent.run,
        outcome=outcome,
        status=result.get("status"),
        message=result.get("msg", ""),
        seconds=round(seconds, 3),
    )
    try:
        if ledger.finish(begun.key, intent, after, ended):
            return result
        problem = "somebody else has changed the entry meanwhile"
    except LedgerError as error:
        problem = error.msg
    msg = f"The request ended with outcome {outcome}, but that could not be written down. {problem}."
    told = f"{msg} {result.get('msg', '')}".rstrip()
    return dict(result, failed=True, changed=outcome == ACCEPTED, msg=told)
