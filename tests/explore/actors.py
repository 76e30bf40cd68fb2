# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who acts in a run: tasks, lists, moves, and users who follow the advice; and the service."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from functools import cache

from ansible_collections.infrastructure.services.plugins.module_utils._call.place import (
    Place as PlaceOfTask,
)
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    ACCEPTED,
    NOT_SENT,
    REJECTED,
    UNKNOWN,
    Message,
    Overtaken,
    ServicesError,
)
from ansible_collections.infrastructure.services.plugins.module_utils._result import Result
from ansible_collections.infrastructure.services.plugins.module_utils._secrets import Secrets
from ansible_collections.infrastructure.services.plugins.module_utils._task.task import (
    Context,
    Planned,
    Task,
    carry_out,
    prepare,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import editing
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.decisions import (
    InDoubt,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    ABSENT,
    PRESENT,
    Entry,
    Key,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.moving import (
    move_ledger,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.recording import (
    Begun,
    ListRecording,
    Recording,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.store import Ledger
from support import CREATE, LEAST, RESOURCES, UPDATE, validated

from .places import Place
from .scheduler import World
from .threads import Actor, Process

URL = "https://service"
_SECRETS = Secrets()
_CONTEXT = Context(False, _SECRETS, PlaceOfTask())
_AGAIN = 5  # times that an item of a list is tried while another run holds it
# What may become of a request: whether it is carried out, and the outcome.
_FATES = {
    "no connection": (False, NOT_SENT),
    "refused": (False, REJECTED),
    "lost": (False, UNKNOWN),
    "carried out, the answer lost": (True, UNKNOWN),
    "carried out, the answer unusable": (True, ACCEPTED),
}


@cache
def wanted(resource: str, name: str, is_listed: bool = False, login: bool = True) -> Task:
    """Return a task; `login`: what an update wants."""
    option = {CREATE: {"name": name}, UPDATE: {"id": name, "attributes": {"login": login}}}[
        resource
    ]
    params = validated(
        resource, {"base_url": URL, "access_token": "t", **LEAST[resource], **option}
    )
    task = prepare(RESOURCES[resource], params)
    return Task(task.resource, task.settings, task.wanted, is_listed)


class Run:
    """What one run has: the world, the service, and what was said and done."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.made: dict[str, list[str]] = {}  # ids by name, as the service made them
        self.sent: dict[
            tuple[str, str], bool
        ] = {}  # by process and name: whether a request was carried out
        self.results: list[tuple[str, str, dict]] = []  # process, name, result
        self.begun: dict[str, str] = {}  # the process that began last to work on it, by name
        self.movers: list[Actor] = []
        self.seconds = 0.0  # that the service takes
        self.is_lost = True  # whether the first request ended the session of its task; False: that is to happen
        self.doomed: Actor | None = (
            None  # who is killed when the service has carried out its request
        )
        self.mistakes = 0  # of users who remove what was, or is being, created since they looked
        world.told = self.state

    def state(self) -> str:
        """Return what the end of a run is judged by, and what those who act see of the service."""
        said = sorted(
            (who, name, result["outcome"], "failed" in result) for who, name, result in self.results
        )
        seen = self.made, self.sent, self.begun, self.is_lost, self.mistakes
        return repr((seen, said, self.world.problems))

    def are_ended(self, actors: Iterable[Actor]) -> bool:
        return all(actor.has_ended or actor.process.is_dead for actor in actors)

    def is_at_work(self, entry: Entry | None, name: str) -> bool:
        """Whether the task that wrote an entry goes on, although a session was lost with its lock."""
        if entry is None or self.world.losses_left > 0:
            return False
        if any((who, what) == (entry.run, name) for who, what, _result in self.results):
            return False
        return any(
            actor.process.name == entry.run and not actor.process.is_dead
            for actor in self.world.actors
        )

    def process(self, kind: str) -> Process:
        return Process(f"{kind} {1 + len(self.world.actors)}")

    def send(self, planned: Planned, _context: Context) -> Result:
        """Send the request of a plan and return the result."""
        operation, name = planned.task.resource.operation, planned.task.wanted.key
        me = self.world.running.process.name
        self.sent.setdefault((me, name), False)
        if not self.is_lost:
            self.is_lost = True
            for session in self.world.running.process.sessions.values():
                session.lose()
        if self.seconds:
            self.world.wait(lambda: False, self.seconds)
        fate = self.world.point("the request", _FATES)
        is_done, outcome = _FATES.get(fate, (True, ACCEPTED))
        self_made = f"{name}-{1 + len(self.made.get(name, ()))}"
        if is_done:
            self.made.setdefault(name, []).append(self_made)
            self.sent[me, name] = True
        if self.world.running is self.doomed:
            self.world.kill(self.doomed.process)
        self.world.see(self_made)
        self.world.point("the answer")
        result = Result(changed=outcome == ACCEPTED, outcome=outcome)
        if outcome != ACCEPTED or fate:
            said = Message("it failed", f"{operation.noun} {name}")
            return replace(result, failed=True, msg=said)
        return replace(result, asset={"id": self_made, **(planned.plan.body or {})})

    def told(self, name: str, work: Callable[[], dict]) -> dict:
        """Return what a task says, and remember it."""
        try:
            result = work()
        except ServicesError as error:
            result = Result.of_error(error).as_ansible()
            result["is_in_doubt"] = isinstance(error, InDoubt)
        self.results.append((self.world.running.process.name, name, result))
        return result


class Remembered(Recording):
    """Remembers who began last."""

    def __init__(self, run: Run, ledger: Ledger) -> None:
        super().__init__(ledger, _SECRETS, run.world.running.process.name)
        self._of_run = run

    def _begin(self, key: Key, planned: Planned) -> Begun:
        begun = super()._begin(key, planned)
        if begun.intent:
            self._of_run.begun[key.name] = self._of_run.world.running.process.name
        return begun


class RememberedList(Remembered, ListRecording):
    """Does so for a list."""


def task(
    run: Run,
    place: Place,
    task: Task,
    when: Callable[[], bool] = lambda: True,
    begins: Callable = lambda: True,
) -> Actor:
    """One task with a ledger; `when`: it looks at it, if that ever happens; `begins`: it goes on."""

    def act() -> None:
        run.world.wait(lambda: when() or run.are_ended(run.movers))
        if when():
            run.told(task.wanted.key, lambda: _carried_out(run, place, task, begins))

    return run.world.add(run.process("task"), act)


def _carried_out(
    run: Run, place: Place, task: Task, begins: Callable[[], bool] = lambda: True
) -> dict:
    with closing(Ledger(place.opened())) as ledger:
        recording = Remembered(run, ledger)
        (planned,) = recording.look_up([task])
        run.world.wait(lambda: begins() or run.are_ended(run.world.actors[:1]))
        return carry_out(planned, _CONTEXT, recording, run.send).as_ansible()


def fleet(run: Run, place: Place, *names: str) -> Actor:
    """A list: each item has a thread, and all of them one queue to the ledger."""
    process = run.process("list")

    def act() -> None:
        def work() -> dict:
            ledger = Ledger(place.opened())
            recording = RememberedList(run, ledger)
            items: list[Actor] = []
            for planned in recording.look_up(
                [wanted(CREATE, name, is_listed=True) for name in names]
            ):
                items.append(
                    run.world.add(process, lambda planned=planned: item(recording, planned))
                )
            run.world.wait(lambda: run.are_ended(items))
            recording.close()
            return dict(outcome=NOT_SENT)

        run.told("", work)

    def item(recording: Recording, planned: Planned) -> None:
        def work() -> dict:
            for _again in range(_AGAIN):
                try:
                    return carry_out(planned, _CONTEXT, recording, run.send).as_ansible()
                except Overtaken:
                    run.world.wait(lambda: False, 1.0)
            return dict(changed=False, skipped=True, outcome=NOT_SENT)

        run.told(planned.task.wanted.key, work)

    return run.world.add(process, act)


def user(run: Run, place: Place, name: str, as_list: bool = False) -> Actor:
    """Somebody who looks as a run does, then at the service, and records it, or removes and repeats
    it.
    """

    def settle() -> dict:
        with closing(Ledger(place.opened())) as ledger:
            (planned,) = Recording(ledger, _SECRETS, "").look_up([wanted(CREATE, name)])
            if not isinstance(planned.error, InDoubt):
                return dict(outcome=NOT_SENT, failed=True)
            run.world.point("a look at the service")
            ids = run.world.see(tuple(run.made.get(name, ())))
            is_early = run.is_at_work(planned.entry, name)
            entry = dict(resource=CREATE, base_url=URL, name=name, state=PRESENT if ids else ABSENT)
            entry["asset"] = {"id": ids[-1]} if ids else None
            entry["changed_at"] = None  # all stamps are the same here, so it could tell nothing

            def note(edit: editing.Edit) -> None:
                """Others changed the entry since the user looked, or are still at work on it."""
                is_other = edit.before not in (None, planned.entry)
                is_wrong = is_other or is_early or run.is_at_work(edit.before, name)
                run.mistakes += not ids and is_wrong

            ledger.note = note
            if as_list:
                return editing.Editor(ledger, _SECRETS).edit_entries(
                    dict(entries=[entry], base_url=URL)
                )
            return editing.Editor(ledger, _SECRETS).edit_entry(entry)

    def act() -> None:
        if not run.told("", settle).get("failed"):
            run.told(name, lambda: _carried_out(run, place, wanted(CREATE, name)))

    return run.world.add(run.process("user"), act)


_write = editing.Editor._write


def written(editor: editing.Editor, edits: list[editing.Edit]) -> list[editing.Edit]:
    """Write what becomes of entries, once the user has noted what they are."""
    for edit in edits:
        editor.ledger.note(edit)
    return _write(editor, edits)


def mover(run: Run, source: Place, target: Place, after: tuple[Actor, ...] = ()) -> None:
    """A ledger_move; one after others completes what was cut off."""

    def work() -> dict:
        with closing(Ledger(source.opened(), moving=True)) as old:
            return move_ledger(
                old, lambda read_only: Ledger(target.opened(), read_only, moving=True), False
            )

    def act() -> None:
        run.world.wait(lambda: run.are_ended(after))
        run.told("", work)

    run.movers.append(run.world.add(run.process("move"), act))
