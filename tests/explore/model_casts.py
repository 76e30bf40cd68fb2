"""Who acts together in the model, and what is found without a guard."""

from __future__ import annotations

from .model import Cast
from .model_actors import Adopter, Lister, ListTask, Person, Reporter, Task
from .model_movers import Mover, Remover, Renamer
from .model_world import DONE, FILLED, IN_USE, UNKNOWN, Entry, Ledger

EMPTY = Ledger("L")
RECORDED = (("A", Ledger("L", entries=(Entry("old", DONE, 0, "url"),))),)
IN_DOUBT = (("A", Ledger("L", entries=(Entry("x", UNKNOWN, 0),))),)
OLD = (("A", EMPTY.recording("old", DONE, 0).having(Entry("old", DONE, 0))),)
MOVED_ON = (
    ("A", Ledger("L", FILLED, "B", 9)),
    ("C", EMPTY.recording("old", DONE, 0).having(Entry("old", DONE, 0))),
)
PLANNED = EMPTY.recording("y", DONE, "y").having(Entry("y", DONE, "y"))

CASTS = {
    "two tasks": Cast([Task(), Task()], kills=2),
    "three tasks": Cast([Task(), Task(), Task()], ticks=2),
    "task, person, task": Cast([Task(), Person(), Task()]),
    "task that is slow, person, task": Cast([Task(), Person(), Task()], ticks=4, kills=0),
    "task that loses the answer of its begin, person, task": Cast(
        [Task(loses_answers=True), Person(), Task()], ticks=4, kills=0
    ),
    "task with two attempts, person, task": Cast(
        [Task(attempts=2), Person(), Task()], ticks=4, kills=0
    ),
    "task, script, task": Cast([Task(), Person(is_script=True), Task()], ticks=1),
    "two updates of a known asset": Cast(
        [Task("old", body="a"), Task("old", body="b")], ticks=1, kills=0, first=OLD
    ),
    "clock set back": Cast([Task(), Person(), Task()], sets=-1),
    "clock set far back": Cast([Task(), Task(waits=0), Person()], ticks=4, kills=0, sets=-6),
    "late answer, two persons, task": Cast([Task(), Person(), Task(), Person()], ticks=2, kills=0),
    "late answer, person, move": Cast([Task(), Person(), Mover()], ticks=3, kills=0),
    "two updates": Cast([Task(body="a"), Task(body="b")], ticks=4),
    "update with two attempts, update": Cast(
        [Task(body="a", attempts=2), Task(body="b")], ticks=5, kills=0
    ),
    "two lists": Cast([ListTask("xy"), ListTask("yx")], ticks=0, kills=0),
    "two lists and a task": Cast([ListTask("xy"), ListTask("yx"), Task()], ticks=1),
    "in doubt, two persons, task": Cast([Person(), Person(), Task()], ticks=1, first=IN_DOUBT),
    "new URL": Cast([Task(), Renamer("new"), Task(url="new")], ticks=2),
    # moves
    "move, task at both ends": Cast(
        [Task(), Mover(), Task(place="B")], ticks=2, first=OLD, again=Mover()
    ),
    "move, person and task at the target": Cast(
        [Task(), Mover(), Person(place="B"), Task(place="B")], ticks=0, kills=0
    ),
    "move, update that is slow, update at the target": Cast(
        [Task("old", body="a"), Mover(), Task("old", body="b", place="B")], ticks=3, first=OLD
    ),
    "two moves to one place": Cast(
        [Mover(), Mover(), Task(place="B")], ticks=0, kills=2, first=OLD, again=Mover()
    ),
    "two moves to one place, person at the target": Cast(
        [Mover(), Mover(), Person("old", "B", forgets=True)],
        ticks=0,
        first=OLD,
        created=((0, "old"),),
    ),
    "two moves to two places": Cast(
        [Task(), Mover(), Mover(target="D"), Task(place="B"), Task(place="D")],
        ticks=0,
        first=OLD,
    ),
    "move to a place that fails": Cast(
        [Task(), Mover(fails=True), Mover(fails=True), Task(place="B")],
        ticks=1,
        kills=0,
        first=OLD,
        again=Mover(),
    ),
    "reservation deleted": Cast(
        [Task(place="B"), Mover(), Mover(), Remover("B")], ticks=0, first=OLD
    ),
    "moved, moved on, removed, moved again": Cast(
        [Mover(), Mover("B", "C"), Remover("B"), Mover()], ticks=0, first=OLD
    ),
    "moved on, moved back, moved again": Cast([Mover("C", "B"), Mover()], first=MOVED_ON),
    "two moves there, removed, moved back": Cast(
        [Mover(), Mover(), Remover("A"), Mover("B", "A")],
        ticks=0,
        kills=0,
        first=OLD,
        created=((0, "old"),),
    ),
    # approvals
    "approved twice, person who forgets": Cast(
        [Task(is_approved=True), Person(forgets=True), Task(is_approved=True)], ticks=2
    ),
    "approved, adopted, forgotten": Cast(
        [Task(is_approved=True), Adopter(), Adopter("y"), Person(forgets=True)],
        ticks=0,
        kills=0,
    ),
    "approved twice, backup put back": Cast(
        [Task(planned=PLANNED, controller="c"), Task(planned=PLANNED, controller="d")],
        ticks=0,
        backs=True,
        backup=EMPTY,
        first=(("A", PLANNED),),
        follows=((1, 0),),
    ),
    # gone back
    "two tasks, backup": Cast(
        [Task(controller="c"), Task(controller="c")], ticks=1, kills=1, backs=True
    ),
    "created elsewhere, two tasks, backup": Cast(
        [Task(controller="c"), Task(controller="c")],
        ticks=0,
        backs=True,
        backup=EMPTY,
        first=(("A", EMPTY.recording("x", DONE, "x").having(Entry("x", DONE, "x"))),),
        created=((0, "x"),),
        kills=0,
        follows=((1, 0), (-1, 0)),
    ),
    "task, list, task, backup": Cast(
        [Task(controller="c"), Lister("c"), Task(controller="c")], ticks=0, kills=0, backs=True
    ),
    "two runs, one report, task, backup": Cast(
        [
            Task(controller="c", reports=True),
            Task("y", controller="c", reports=True),
            Reporter(1),
            Task(controller="c"),
        ],
        ticks=0,
        kills=0,
        backs=True,
        follows=((1, 0), (2, 1), (3, 2)),
    ),
    "run, report, backup": Cast(
        [Task(controller="c", reports=True), Reporter(0), Task(controller="c")],
        ticks=0,
        backs=True,
    ),
    "run whose outcome is lost, report, backup": Cast(
        [Task(controller="c", reports=True), Reporter(0)],
        ticks=2,
        kills=0,
        backs=True,
        follows=((1, 0),),
    ),
    "run, person who forgets, backup": Cast(
        [Task(controller="c", reports=True), Person(forgets=True)], ticks=1, backs=True
    ),
    "run, adopted, forgotten, report, backup": Cast(
        [Task(controller="c", reports=True), Adopter(), Person(forgets=True), Reporter(0)],
        ticks=0,
        kills=0,
        backs=True,
        follows=((1, 0), (2, 1)),
    ),
}

# The cast that finds what goes wrong without a guard.
FINDS = {
    "insert": "two tasks",
    "revision": "two updates of a known asset",
    "own revision": "late answer, two persons, task",
    "listed": "task that is slow, person, task",
    "edit lease": "task, script, task",
    "future": "clock set back",
    "first sight": "clock set far back",
    "look": "task that is slow, person, task",
    "before": "task that is slow, person, task",
    "first": "task that loses the answer of its begin, person, task",
    "clock": "task that is slow, person, task",
    "begin again": "task with two attempts, person, task",
    "late insert": "two tasks, backup",
    "outcome usable": "late answer, person, move",
    "usable": "move, task at both ends",
    "url": "new URL",
    "url intent": "new URL",
    "close intent": "move, person and task at the target",
    "close first": "move, task at both ends",
    "portion": "two moves to one place, person at the target",
    "reservation": "reservation deleted",
    "mark first": "moved, moved on, removed, moved again",
    "fill once": "moved, moved on, removed, moved again",
    "close as seen": "two moves there, removed, moved back",
    "approval": "approved twice, person who forgets",
    "per asset": "approved, adopted, forgotten",
    "snapshot": "approved twice, person who forgets",
    "plan row": "approved twice, backup put back",
    "named": "in doubt, two persons, task",
    "order": "two lists",
    "note first": "two tasks, backup",
    "note seen": "created elsewhere, two tasks, backup",
    "note kept": "task, list, task, backup",
    "note of each run": "two runs, one report, task, backup",
    "look again": "two tasks, backup",
    "end": "run, person who forgets, backup",
    "lost": "run, person who forgets, backup",
    "own rows": "run whose outcome is lost, report, backup",
    "later": "run, adopted, forgotten, report, backup",
    "written back": "run, report, backup",
}
