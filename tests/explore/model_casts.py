"""Who acts together in the model, and which guards each cast needs."""

from __future__ import annotations

from typing import Any

from .model import Cast
from .model_actors import Adopter, ListTask, Person, Reporter, Task
from .model_movers import Mover, Remover, Renamer
from .model_world import DONE, FILLED, UNKNOWN, Entry, Ledger

BACK, FIRST = -1, 0  # of `follows`: that the backup is put back, and the first actor


def _ledger(key: str, state: str = DONE) -> Ledger:
    entry = Entry(key, state, key)
    return Ledger("L").having(entry).recording(key, state, entry.revision)


OLD: dict[str, Any] = dict(first={"A": _ledger("old")}, created={FIRST: "old"})
TO_BACKUP: dict[str, Any] = dict(ticks=0, kills=0, backs=True, backup=Ledger("L"))
KEEPS = Task(controller="c", reports=True)

CASTS = {
    "two tasks": Cast([Task(), Task()], kills=2, finds=["insert"]),
    "three tasks": Cast([Task(), Task(), Task()], ticks=2),
    "task, person, task": Cast([Task(), Person(), Task()]),
    "task that is slow, person, task": Cast(
        [Task(), Person(), Task()], ticks=4, kills=0, finds=["listed", "look", "before", "clock"]
    ),
    "task that loses the answer of its begin, person, task": Cast(
        [Task(loses_answers=True), Person(), Task()], ticks=4, kills=0, finds=["first"]
    ),
    "task with two attempts, person, task": Cast(
        [Task(attempts=2), Person(), Task(waits=0)], ticks=4, kills=0, finds=["begin again"]
    ),
    "task, script, task": Cast(
        [Task(), Person(is_script=True), Task()], ticks=1, finds=["edit lease"]
    ),
    "two updates of a known asset": Cast(
        [Task("old", body="a"), Task("old", body="b")], ticks=1, kills=0, finds=["revision"], **OLD
    ),
    "clock set back": Cast([Task(), Person(), Task()], kills=0, sets=-2, finds=["future"]),
    "clock set far back": Cast(
        [Task(), Task(waits=0), Person()], ticks=3, kills=0, sets=-6, finds=["first sight"]
    ),
    "late answer, two persons, task": Cast(
        [Task(), Person(), Task(), Person()], ticks=2, kills=0, finds=["own revision"]
    ),
    "two updates": Cast([Task(body="a"), Task(body="b")], ticks=4),
    "update with two attempts, update": Cast(
        [Task(body="a", attempts=2), Task(body="b", waits=0)], ticks=4, kills=0
    ),
    "two lists": Cast([ListTask("xy"), ListTask("yx")], ticks=0, kills=0, finds=["order"]),
    "two lists and a task": Cast([ListTask("xy"), ListTask("yx"), Task()], ticks=1),
    "in doubt, two persons, task": Cast(
        [Person(), Person(), Task()], ticks=1, first={"A": _ledger("x", UNKNOWN)}, finds=["named"]
    ),
    "new URL": Cast([Task(), Renamer("new"), Task(url="new")], finds=["url", "url intent"]),
    "move, task at both ends": Cast(
        [Task(), Mover(), Task(place="B")], again=Mover(), finds=["usable", "close first"], **OLD
    ),
    "move, person and task at the target": Cast(
        [Task(), Mover(), Person(place="B"), Task(place="B")], ticks=0, finds=["close intent"]
    ),
    "move, late answer, person": Cast([Task(), Person(), Mover()], finds=["outcome usable"]),
    "move, update that is slow, update at the target": Cast(
        [Task("old", body="a"), Mover(), Task("old", body="b", place="B")], **OLD
    ),
    "two moves to one place": Cast(
        [Mover(), Mover(), Task(place="B")], ticks=0, kills=2, again=Mover(), **OLD
    ),
    "two moves to one place, person at the target": Cast(
        [Mover(), Mover(), Person("old", "B", forgets=True)], ticks=0, finds=["portion"], **OLD
    ),
    "two moves to two places": Cast(
        [Task(), Mover(), Mover(target="D"), Task(place="B"), Task(place="D")], ticks=0, **OLD
    ),
    "move to a place that fails": Cast(
        [Task(), Mover(fails=True), Mover(fails=True)], ticks=1, kills=0, again=Mover(), **OLD
    ),
    "two moves to one place, reservation deleted": Cast(
        [Mover(), Mover(), Remover("B")], ticks=0, finds=["reservation"], **OLD
    ),
    "moved, moved on, removed, moved again": Cast(
        [Mover(), Mover("B", "C"), Remover("B"), Mover()],
        ticks=0,
        finds=["mark first", "fill once"],
        **OLD,
    ),
    "moved on, moved back, moved again": Cast(
        [Mover("C", "B"), Mover()],
        first={"A": _ledger("old")._replace(mark=FILLED, to="B"), "C": _ledger("old")},
    ),
    "two moves to one place, removed, moved back": Cast(
        [Mover(), Mover(), Remover("A"), Mover("B", "A")], kills=0, finds=["close as seen"], **OLD
    ),
    "approved twice, person who forgets": Cast(
        [Task(is_approved=True), Person(forgets=True), Task(is_approved=True)],
        ticks=2,
        finds=["approval", "snapshot"],
    ),
    "approved, adopted, forgotten": Cast(
        [Task(is_approved=True), Adopter(), Adopter("y"), Person(forgets=True)],
        ticks=0,
        kills=0,
        finds=["per asset"],
    ),
    "approved twice, backup put back": Cast(
        [Task(planned=_ledger("y"), controller=name) for name in "cd"],
        first={"A": _ledger("y")},
        follows=[(1, FIRST)],
        finds=["plan row"],
        **TO_BACKUP,
    ),
    "two tasks, backup": Cast(
        [Task(controller="c"), Task(controller="c")],
        ticks=1,
        backs=True,
        finds=["late insert", "note first", "look again"],
    ),
    "three tasks, backup": Cast(
        [Task(controller="c"), Task(controller="c"), Task(controller="c")],
        follows=[(1, FIRST), (2, 1)],
        finds=["note kept"],
        **TO_BACKUP,
    ),
    "task, backup, new URL, task": Cast(
        [Task(controller="c"), Renamer("new"), Task(url="new", controller="c")],
        follows=[(1, FIRST), (2, 1)],
        finds=["note by id"],
        **TO_BACKUP,
    ),
    "created elsewhere, two tasks, backup": Cast(
        [Task(controller="c"), Task(controller="c")],
        first={"A": _ledger("x")},
        created={FIRST: "x"},
        follows=[(1, FIRST), (BACK, FIRST)],
        finds=["note seen"],
        **TO_BACKUP,
    ),
    "two runs, one report, task, backup": Cast(
        [KEEPS, Task("y", controller="c", reports=True), Reporter(1), Task(controller="c")],
        follows=[(1, FIRST), (2, 1), (3, 2)],
        finds=["note of each run"],
        **TO_BACKUP,
    ),
    "run, report, task, backup": Cast(
        [KEEPS, Reporter(0), Task(controller="c")], ticks=0, backs=True, finds=["written back"]
    ),
    "run whose outcome is lost, report, backup": Cast(
        [KEEPS, Reporter(0)], kills=0, backs=True, follows=[(1, FIRST)], finds=["own rows"]
    ),
    "run, person who forgets, backup": Cast(
        [KEEPS, Person(forgets=True)], ticks=1, backs=True, finds=["end", "lost"]
    ),
    "run, task, person, backup": Cast(
        [KEEPS, Task(controller="c"), Person()],
        ticks=0,
        kills=0,
        backs=True,
        follows=[(2, 1)],
        finds=["before it"],
    ),
    "two updates, backup": Cast(
        [Task("old", body=body, controller="c", reports=True) for body in "ab"],
        ticks=2,
        kills=0,
        backs=True,
        finds=["edited later"],
        **OLD,
    ),
    "run, adopted, forgotten, report, backup": Cast(
        [KEEPS, Adopter(), Person(forgets=True), Reporter(0)],
        follows=[(1, FIRST), (2, 1)],
        finds=["later"],
        **TO_BACKUP,
    ),
}

# What the ledger does not hold: the model finds it with all guards.
LIMITS = {
    "clock set forward by the margin": Cast([Task(), Person(), Task()], sets=1),
    "backup put back, controller that has seen nothing": Cast(
        [Task(controller="c"), Task(controller="d")], backs=True
    ),
}
