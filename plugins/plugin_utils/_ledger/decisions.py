# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The meaning of an entry: for the task that finds it, and for the task that leaves it.

An entry is in one of four states. `intent`: a request is in flight, or was when its process died.
`done`: it was accepted and the envelope is known. `accepted`: it was accepted but the envelope was
lost. `unknown`: it may or may not have been processed. docs/docsite/rst/ledger.rst lists the
transitions.
"""

from __future__ import annotations

from ...module_utils._errors import (
    ACCEPTED,
    NOT_SENT,
    REJECTED,
    UNKNOWN,
    Message,
    ServicesError,
    sentence,
)
from ...module_utils._resources.planning import Recorded
from ...module_utils._result import Result
from ...module_utils._secrets import printable, without_placeholders
from ...module_utils._task.task import Planned, Task
from .commands import playbook_command
from .entries import ABSENT, DONE, INTENT, Change, Ended, Entry

SEND, COMPARE, REFUSE = "send", "compare", "refuse"

# The action of a task on the state of the entry that it finds (None: no entry). A creation must
# not be repeated; an update may be. With `force` everything is sent.
ON_FINDING = {
    None: {"POST": SEND, "PUT": SEND},
    INTENT: {"POST": REFUSE, "PUT": SEND},
    DONE: {"POST": COMPARE, "PUT": COMPARE},
    ACCEPTED: {"POST": REFUSE, "PUT": SEND},
    UNKNOWN: {"POST": REFUSE, "PUT": SEND},
}

# The state of the entry after a request, by outcome and whether the envelope came back. None: as it
# was before.
AFTER = {
    (ACCEPTED, True): DONE,
    (ACCEPTED, False): ACCEPTED,
    (UNKNOWN, False): UNKNOWN,
    (REJECTED, False): None,
    (NOT_SENT, False): None,
}

_HOW = {
    ACCEPTED: "the service accepted it, but its answer was lost or unusable",
    UNKNOWN: "how it ended is not known",
}
_ENTRY = "infrastructure.services.ledger_entry (state:"
# How to settle a creation in doubt, by its outcome.
_SETTLE = {
    ACCEPTED: (
        "It exists: do not create it again. Record its asset, with the id of the service, by"
        f" {_ENTRY} present)."
    ),
    UNKNOWN: (
        f"Look for it on the service. If it is there, confirm it with {_ENTRY} present and its"
        " asset); if not, remove the entry with the same module (state: absent), and this task"
        " creates it."
    ),
    **dict.fromkeys(
        (REJECTED, NOT_SENT), f"Before you run it again, remove its entry with {_ENTRY} absent)."
    ),
}
_FORCE = " With force: true the task creates it whatever the ledger says."
# The next step for a creation that is now in doubt, by the state of its entry.
NEXT = {
    UNKNOWN: "The ledger does not send it again until it is settled.",
    ACCEPTED: "Look up its id on the service and record it.",
}


class InDoubt(ServicesError):
    """An earlier task may have created the asset already."""

    has_changed = False  # this task sent nothing

    def __init__(self, entry: Entry, task: Task, command: str) -> None:
        """`command`: the shell command that lists the entries in doubt and how to settle them."""
        self.outcome = ACCEPTED if entry.state == ACCEPTED else UNKNOWN
        text = (
            f"the ledger says that a task began to create it at {entry.began_at};"
            f" {_HOW[self.outcome]}. This task sent nothing. {_SETTLE[self.outcome]}"
        )
        # `force` sends all of a list again.
        if not task.is_listed and entry.state != ACCEPTED:
            text += _FORCE
        super().__init__(Message(text, task.asset, command, entry.began_at))


def plan_with(task: Task, entry: Entry | None, shown: str) -> Planned:
    """Return the task with its plan, or with the error that forbids it.

    `shown`: the ledger in commands.
    """
    if entry is None:
        return task.planned()
    method = task.resource.operation.method
    force = task.wanted.force
    recorded = None
    found = ON_FINDING[entry.state][method]
    if found == REFUSE and not force:
        command = playbook_command(shown, "in_doubt")
        return Planned(task, entry=entry, error=InDoubt(entry, task, command))
    if found == COMPARE and not (force and method == "POST"):
        recorded = Recorded(entry.sent, entry.asset)
    return task.planned(recorded, entry)


def ending(begun: Change, result: Result, seconds: float = 0.0) -> Change:
    """Return the change that ends an attempt, with its history row; `begun`: its intent."""
    before = begun.before
    entry = begun.after
    if entry is None:
        raise ValueError("only an intent can end")
    outcome = result.outcome
    asset = result.asset
    trace_id = result.trace_id or ""
    state = AFTER.get((outcome, asset is not None), UNKNOWN)
    after = before
    if state:
        after = entry._replace(state=state, changed_at="", trace_id=trace_id)
        if asset is not None:
            after = after._replace(asset=without_placeholders(asset))
    ended = Ended(
        from_state=before.state if before else ABSENT,
        to_state=after.state if after else ABSENT,
        run=entry.run,
        outcome=outcome,
        status=result.status,
        message=str(result.msg),
        seconds=round(seconds, 3),
        trace_id=trace_id,
    )
    return Change(begun.key, entry, after, ended)


def unrecorded(result: Result, problem: str, task: Task) -> Result:
    """Return a result as the failure to record it, with all its other keys."""
    outcome = result.outcome
    said = result.msg
    next_step = "Run it again, which sends it once more."
    if task.resource.operation.method == "POST":
        next_step = _SETTLE[outcome]
    why = f"outcome is {outcome}, but it could not be recorded: {sentence(problem)} {next_step}"
    said = said.then(f"The {why}") if said.text else Message(f"the {why}", task.asset)
    return result.but(failed=True, changed=outcome == ACCEPTED, msg=said)


def warning_of_others(task: Task, found: dict[str, list[str]]) -> str:
    """Return a warning about assets that are recorded at other base_urls (`found`, by name)."""
    name, others = next(iter(found.items()))
    more = len(found) - 1
    same = ""
    if more:
        same = f" The same is true of {more:,} other{'s' if more > 1 else ''}."
    return printable(
        f"{task.resource.operation.noun} {name}: the ledger has one of this name at"
        f" {', '.join(others)}, and nothing yet at {task.settings.service}. If both"
        " are the same service, use the base_url that is recorded, or move its entries with"
        " infrastructure.services.ledger_move (to_base_url); otherwise they are two different"
        f" assets.{same}"
    )
