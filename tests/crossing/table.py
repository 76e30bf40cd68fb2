"""The required result of a creation: in both places, with every ledger, whatever the service
answers, in every form.

`expected` states the contract; none of it was derived from what the code does. `says` are words
that a message must contain in addition to the name of the machine.
"""

from __future__ import annotations

from itertools import product
from typing import Callable, NamedTuple

from support.wire import Last, answer

# Where a task runs. A ledger works in the worker alone.
PATHS = ("worker", "target")
LEDGERS = ("none", "sqlite", "postgresql")
# `again` follows `plain`, and `plan` follows both in check mode: the same machine each time.
FORMS = ("plain", "again", "plan", "until", "loop", "check")
CPU = 4


class Expected(NamedTuple):
    """The result of one task, or of one item of a loop."""

    outcome: str
    failed: bool
    changed: bool
    asset: str = ""  # "created", "predicted", or none
    says: tuple[str, ...] = ()
    warns: str = ""
    requests: int = 0


class Fate(NamedTuple):
    """How the service answers a request, the result of the task, and the state of its entry."""

    answer: Callable[[str], bytes] | None
    expected: Expected
    state: str | None = None


def created(name: str, cpu: int = CPU) -> dict:
    """Return the envelope of a new machine."""
    return {
        "id": f"id-of-{name}",
        "name": name,
        "description": None,
        "service": "compute",
        "platform": "p",
        "region": "r",
        "tenant": "t",
        "attributes": {"cpu": cpu},
    }


def predicted(name: str) -> dict:
    """Return the envelope as far as it is known before the request."""
    return {**dict.fromkeys(created(name)), "name": name, "attributes": {"cpu": CPU}}


DONE = Expected("accepted", failed=False, changed=True, asset="created", requests=1)
FATES = {
    "ok": Fate(lambda name: answer(201, created(name)), DONE, "done"),
    "warning": Fate(lambda name: answer(201, created(name, 8)), DONE._replace(warns="cpu"), "done"),
    "403": Fate(
        lambda name: answer(403), Expected("rejected", True, False, says=("403",), requests=1)
    ),
    "500": Fate(
        lambda name: answer(500),
        Expected("unknown", True, False, says=("500",), requests=1),
        "unknown",
    ),
    "lost": Fate(
        lambda name: Last(),
        Expected("unknown", True, False, says=("connection",), requests=1),
        "unknown",
    ),
    "unusable": Fate(
        lambda name: answer(204),
        Expected("accepted", True, True, says=("204",), requests=1),
        "accepted",
    ),
    "bad option": Fate(None, Expected("not_sent", True, False, says=("attributes", "cpus"))),
    "unreachable": Fate(None, Expected("not_sent", True, False, says=("refused",))),
}
REFUSED = "bad option"
UNREPEATABLE = Expected("not_sent", True, False, says=("until", "without a ledger"))
PREDICTED = Expected("not_sent", failed=False, changed=True, asset="predicted")
NEXT_STEPS = {
    "unknown": ("Look for it on the service", "Look again later", "services.in_doubt"),
    "accepted": ("accepted it", "exists", "services.in_doubt"),
}


def expected(path: str, ledger: str, fate: str, form: str) -> Expected:
    """Return the expected result of a task; `requests`: those of this task alone, or of one item in
    a loop.
    """
    once = FATES[fate].expected
    if form == "until" and ledger == "none":
        return UNREPEATABLE
    if form == "until":
        return _until(once, times(path), FATES[fate].state)
    state = FATES[fate].state if ledger != "none" else None
    if state and form in ("again", "plan"):
        return _known(once, state)
    if form in ("check", "plan"):
        return once if fate == REFUSED else PREDICTED
    return once


def _until(once: Expected, attempts: int, state: str | None) -> Expected:
    """Return the result under a condition that is never met: the ledger answers each later attempt
    as any further task.
    """
    if state:
        return _known(once, state)._replace(failed=True, requests=1)
    return once._replace(requests=once.requests * attempts)


def _known(once: Expected, state: str) -> Expected:
    """Return the result of the next task when the ledger has the machine in this state."""
    if state == "done":
        return Expected("not_sent", failed=False, changed=False, asset="created")
    return Expected(once.outcome, failed=True, changed=False, says=NEXT_STEPS[once.outcome])


class Case(NamedTuple):
    """One task of a run, for all ledgers."""

    fate: str
    form: str
    items: int  # 0: no loop
    machine: int  # its number; `again` and `plan` use the one that `plain` created

    @property
    def task(self) -> str:
        """The name of the task."""
        return f"{self.fate}, {self.form}"

    def names(self) -> list[str]:
        """The machines, one for each item of a loop."""
        return [f"vm-{self.machine}-{item}" for item in range(self.items)] or [f"vm-{self.machine}"]


def ledgers(path: str) -> list[str]:
    """Return the ledgers of a path."""
    return [*LEDGERS] if path == "worker" else ["none"]


def times(path: str) -> int:
    """Return the length of a loop, and how often `until` tries; on a target each starts a Python."""
    return 2 if path == "target" else 3


def cases(path: str) -> list[Case]:
    """Return the tasks of a path, in order."""
    made, machines = [], {}
    for number, (fate, form) in enumerate(product(FATES, FORMS)):
        machine = machines.setdefault(
            (fate, "plain" if form in ("again", "plan") else form), number
        )
        made.append(Case(fate, form, times(path) if form == "loop" else 0, machine))
    return made
