"""Who acts together in the model, and what is found without a guard."""

from __future__ import annotations

from .model import Cast
from .model_actors import Adopter, ListTask, Person, TargetTask, Task
from .model_movers import Failover, Mover, Remover, Renamer
from .model_world import DONE, UNKNOWN, Entry, Ledger

RECORDED = (("A", Ledger("L", entries=(Entry("old", DONE, 0, "url"),))),)

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
    "task, script, task": Cast(
        [Task(), Person(is_script=True), Task()], ticks=1, is_session_ending=True
    ),
    "two updates of a known asset": Cast(
        [Task("old", body="a"), Task("old", body="b")], ticks=1, kills=0, first=RECORDED
    ),
    "clock set back": Cast([Task(), Person(), Task()], sets=-1),
    "clock set back, task with two attempts, person": Cast(
        [Task(attempts=2), Person()], ticks=5, sets=-1, kills=1
    ),
    "failover that loses an intent": Cast([Task(), Failover()], kills=0),
    "clock set far back": Cast([Task(waits=0)], ticks=6, sets=-5),
    "module on a target": Cast([TargetTask(), Person(), Task()], ticks=4),
    "module on a target that is lost": Cast(
        [TargetTask(attempts=2), Person(), Task()], ticks=3, kills=0
    ),
    "late answer, two persons, task": Cast([Task(), Person(), Task(), Person()], ticks=2, kills=0),
    "late answer, person, move": Cast([Task(), Person(), Mover()], ticks=3, kills=0),
    "two updates": Cast([Task(body="a"), Task(body="b")], ticks=4),
    "update with two attempts, update": Cast(
        [Task(body="a", attempts=2), Task(body="b")], ticks=5, kills=0
    ),
    "two lists": Cast([ListTask("xy"), ListTask("yx")], ticks=0, kills=0),
    "two lists and a task": Cast([ListTask("xy"), ListTask("yx"), Task()], ticks=1),
    "in doubt, two persons, task": Cast(
        [Person(), Person(), Task()],
        ticks=1,
        first=(("A", Ledger("L", entries=(Entry("x", UNKNOWN, 0, "url"),))),),
    ),
    "move, task at both ends": Cast(
        [Task(), Mover(), Task(place="B")], ticks=2, first=RECORDED, again=Mover()
    ),
    "two moves to one place": Cast(
        [Task(), Mover(), Mover(), Task(place="B")], ticks=1, kills=2, first=RECORDED, again=Mover()
    ),
    "two moves to two places": Cast(
        [Task(), Mover(), Mover(target="D"), Task(place="B"), Task(place="D")],
        ticks=1,
        first=RECORDED,
    ),
    "move to a place that fails": Cast(
        [Task(), Mover(fails=True), Mover(fails=True), Task(place="B")],
        ticks=1,
        kills=0,
        first=RECORDED,
        again=Mover(),
    ),
    "reservation deleted": Cast(
        [Task("old", place="B", follows="A"), Mover(), Remover()],
        ticks=0,
        first=RECORDED,
        created=((0, "old"),),
    ),
    "new URL": Cast([Task(), Renamer("new"), Task(url="new")], ticks=2),
    "approved twice, person who forgets": Cast(
        [Task(is_approved=True), Person(forgets=True), Task(is_approved=True)], ticks=2
    ),
    "approved, adopted, forgotten": Cast(
        [Task(is_approved=True), Adopter(), Adopter("y"), Person(forgets=True)],
        ticks=0,
        kills=0,
    ),
}

# The cast that finds what goes wrong without a guard.
FINDS = {
    "insert": "two tasks",
    "revision": "two updates of a known asset",
    "own revision": "late answer, two persons, task",
    "listed": "task that is slow, person, task",
    "edit lease": "task, script, task",
    "no session": "task, script, task",
    "future": "clock set back",
    "not for ever": "clock set far back",
    "look": "task that is slow, person, task",
    "before": "task that is slow, person, task",
    "first": "task that loses the answer of its begin, person, task",
    "clock": "task that is slow, person, task",
    "shell": "module on a target",
    "own result": "module on a target that is lost",
    "renew": "task with two attempts, person, task",
    "renew lease": "task with two attempts, person, task",
    "renew revision": "clock set back, task with two attempts, person",
    "late insert": "failover that loses an intent",
    "late usable": "late answer, person, move",
    "usable": "move, task at both ends",
    "url": "new URL",
    "url intent": "new URL",
    "close intent": "move, task at both ends",
    "close first": "move, task at both ends",
    "reservation": "two moves to one place",
    "stays": "reservation deleted",
    "approval": "approved twice, person who forgets",
    "per asset": "approved, adopted, forgotten",
    "snapshot": "approved twice, person who forgets",
    "named": "in doubt, two persons, task",
    "order": "two lists",
}

# Either of these guards is enough unless a clock is set back; they are taken out together.
TOGETHER = {"renew lease": "renew revision"}

# What the ledger does not hold: the model finds it with all guards.
LIMITS = {
    "clock set forward by the margin": Cast([Task(), Person(), Task()], sets=1),
    "clock set back by a lease while a request is in flight": Cast(
        [Task(), Person(), Task()], sets=-2
    ),
}
