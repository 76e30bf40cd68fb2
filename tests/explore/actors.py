"""Who acts in a run: tasks, lists, movers, persons; and the service."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from types import SimpleNamespace
from typing import Any, NamedTuple

from ansible_collections.infrastructure.services.plugins.module_utils._call import attempt
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    ACCEPTED,
    UNKNOWN,
    AttemptFailed,
    ServicesError,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http import (
    Answer,
    Request,
    transport,
)
from ansible_collections.infrastructure.services.plugins.module_utils._list.lists import (
    carry_out_list,
)
from ansible_collections.infrastructure.services.plugins.module_utils._result import Result
from ansible_collections.infrastructure.services.plugins.module_utils._secrets import Secrets
from ansible_collections.infrastructure.services.plugins.module_utils._task import loop, task
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    LEDGER_ENTRY,
    VIRTUAL_MACHINES,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.task import Context
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    Options,
    validate,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import (
    entries,
    ledger,
    sql,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.editing import (
    edits_of,
    edits_of_report,
    write_edits,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import Write
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.ledger import (
    Header,
    Ledger,
    create_ledger,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.listing import (
    list_entries,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.moving import (
    move_ledger,
    set_base_url,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.recording import (
    Recording,
)
from support import CREATE, LEAST, SPECS
from support.turns import Answers, Killed, World

from .places import Database, Notes, Place

URL, NEW_URL = "http://127.0.0.1:1", "http://127.0.0.1:2"
NAME, OTHER = "web01", "web00"
OURS, FOREIGN = "a" * 32, "b" * 32  # of ledgers
_SECRETS = Secrets()
_SLOW = 20  # seconds, more than the grace of a loop
_MOST_LOOKS = 30  # at the lease of another task, one each 20 seconds
_FILTERS = dict.fromkeys(
    ["names", "resource", "run", "changed_since", "history", "summary", "file", "table"]
)
NO_CONNECTION, HANGS = "no connection", "hangs"
# What may become of a request: whether it is carried out, and the status of the answer.
_FATES: dict[str, tuple[bool, int]] = {
    "": (True, 201),
    "slow": (True, 201),
    "refused": (False, 400),
    "too many": (False, 429),
    "lost": (False, 0),
    "carried out, the answer lost": (True, 0),
    "carried out, the answer unusable": (True, 204),
}


@dataclass
class Asset:
    """What a request created or updated."""

    id: str
    name: str
    by: str
    exists: bool = True


class Told(NamedTuple):
    """The result of a task, or of one asset of a list that has looked at its end."""

    who: str
    name: str
    result: Result
    has_looked: bool = False


class Run:
    """What one run has: the world, the places of ledgers, the service, and all results."""

    def __init__(
        self, world: World, tried_for: float = 10, changes: Sequence[tuple[Any, str, Any]] = ()
    ) -> None:
        """`changes`: of attributes of the code, which make a defect."""
        self.world = world
        self.tried_for = tried_for
        self.places = {name: Place(world, name) for name in "ABC"}
        self.notes: dict[str, dict[str, str]] = defaultdict(dict)  # by controller
        self.assets: list[Asset] = []
        self.told: list[Told] = []
        self.approved: dict[str, Result] = {}  # the rows of a plan
        self.problems: list[str] = []
        self.requests = 0
        self.in_flight: list[str] = []  # the assets of the requests that may arrive
        self.restored: int | None = None  # how many results there were when a backup was put back
        self.forgotten: set[str] = set()
        self.began_with: dict[str, str] = {}  # the ledger of each task
        clock = SimpleNamespace(monotonic=world.monotonic, sleep=world.sleep)
        self._changes = [
            (task, "Loop", self._loop),
            (transport, "send_once", self._send_once),
            (attempt, "time", clock),
            (ledger, "time", clock),
            (entries, "current_time", lambda: entries.time_of(int(self.clocks()[1]))),
            *changes,
        ]

    @contextmanager
    def open(self) -> Iterator[None]:
        """Let the code under test run in this world."""
        before = [(owner, name, getattr(owner, name)) for owner, name, _new in self._changes]
        try:
            for owner, name, value in self._changes:
                setattr(owner, name, value)
            create_ledger(self.database("A"), Header(OURS, URL, sql.IN_USE))
            yield
        finally:
            for owner, name, value in before:
                setattr(owner, name, value)
            for place in self.places.values():  # its function keeps the world in memory
                place.connection.close()

    def clocks(self) -> tuple[float, float]:
        """Return the time since a start, and the time of day."""
        return self.world.now, self.world.now + self.places["A"].offset

    def database(self, at: str, loses: Write | None = None) -> Database:
        return Database(self.world, self.places[at], self.tried_for, loses)

    def opened(
        self,
        at: str,
        url: str = "",
        controller: str = "c",
        loses: Write | None = None,
        **how: bool,
    ) -> Ledger:
        """Open the ledger at a place."""
        return Ledger(self.database(at, loses), self.seen(controller), url, **how)

    def seen(self, controller: str = "c") -> Notes:
        """Return the notes of a controller for the run that is running."""
        return Notes(self.world, self.notes[controller], self.world.process.name)

    def existing(self, name: str) -> list[Asset]:
        return [asset for asset in self.assets if asset.name == name and asset.exists]

    def _loop(self, *given: Any, **more: Any) -> loop.Loop:
        world = self.world
        return loop.Loop(
            *given, **more, clock=world.monotonic, queue=Answers(world), start=world.start
        )

    # The service

    def _send_once(self, _connection: object, request: Request, timeout: float) -> Answer:
        """Send a request; it arrives within its timeout, also when the sender was killed."""
        world, began = self.world, self.world.monotonic()
        self.requests += 1
        fate = world.point("connecting", [NO_CONNECTION, HANGS])
        world.sleep(_SLOW if fate == HANGS else 0)
        if fate == NO_CONNECTION or world.monotonic() - began > timeout:
            raise AttemptFailed("no connection")
        request.may_send()
        name, who = _name_in(request), world.process.name
        self._note_in_flight(request, name)
        try:
            fate = world.point("the request", list(_FATES)[1:])
            world.sleep(_SLOW if fate == "slow" else 0)
        except Killed:
            world.add("a request", partial(self._arrive, request, name, who))
            raise
        is_done, status = _FATES[fate]
        asset = self._arrive(request, name, who, is_done)
        world.point("the answer")
        if not status:
            raise AttemptFailed("lost", sent=True)
        body = dict(id=asset.id, name=name, attributes={}) if asset else {}
        headers = {"Retry-After": "1"} if status == 429 else {}
        return Answer(status, headers, b"" if status == 204 else json.dumps(body).encode())

    def _note_in_flight(self, request: Request, name: str) -> None:
        if name in self.in_flight:
            self.problems.append(f"two requests for {name} at once")
        used = [place for place in self.places.values() if place.header("state") == sql.IN_USE]
        if len(used) > 1:
            self.problems.append("two ledgers are in use")
        if any(not request.url.startswith(place.header("base_url")) for place in used):
            self.problems.append("a request to a URL that the service no longer has")
        self.in_flight.append(name)
        self.world.in_flight += 1

    def _arrive(self, request: Request, name: str, who: str, is_done: bool = True) -> Asset | None:
        """Carry out a request, or lose it."""
        self.in_flight.remove(name)
        self.world.in_flight -= 1
        if not is_done:
            return None
        if request.method == "PUT":
            self.assets[:] = [asset for asset in self.assets if asset.name != name]
        elif self.existing(name):
            self.problems.append(f"{name} was created twice")
        identifier = name if request.method == "PUT" else f"vm-{len(self.assets)}"
        self.forgotten.discard(name)
        self.assets.append(Asset(identifier, name, who))
        return self.assets[-1]


def _name_in(request: Request) -> str:
    is_update = request.method == "PUT"
    return request.url.rpartition("/")[2] if is_update else str(json.loads(request.body)["name"])


# Tasks and lists


@cache
def options_of(resource: str, name: str, url: str, identifier: str | None = None) -> Options:
    key = "name" if resource == CREATE else "id"
    more = {"id": identifier} if identifier else {}
    return validate(SPECS[resource], {**LEAST[resource], **_shared(url), key: name, **more})


@cache
def options_of_list(names: str, url: str = URL) -> Options:
    items = [{"name": name} for name in names.split()]
    return validate(VIRTUAL_MACHINES, {"virtual_machines": items, **_shared(url)})


def _shared(url: str) -> dict[str, object]:
    return dict(base_url=url, access_token="t", ledger="A", retries=2, retry_max_delay=1)


def _context(run: Run, check_mode: bool = False) -> Context:
    process = run.world.process
    return Context(check_mode, _SECRETS, why_to_stop=lambda: process.why_to_stop)


def _recording(
    run: Run,
    at: str = "A",
    controller: str = "c",
    approved: bool = False,
    url: str = URL,
    loses: Write | None = None,
) -> Recording:
    """Open the ledger for tasks."""
    looks = 0

    def pause(_seconds: float) -> None:
        nonlocal looks
        looks += 1
        if looks == _MOST_LOOKS:
            run.problems.append("the lease of another task does not end")
            raise Killed
        run.world.sleep(20)

    rows = {name: row.last_row or 0 for name, row in run.approved.items()} if approved else None
    who, opened = run.world.process.name, run.opened(at, url, controller, loses)
    run.began_with[who] = opened.header.ledger_id
    recording = Recording(opened, _SECRETS, who, rows, pause=pause)
    recording.clocks = run.clocks
    return recording


def send(
    run: Run,
    at: str = "A",
    resource: str = CREATE,
    name: str = NAME,
    controller: str = "c",
    url: str = URL,
    identifier: str | None = None,
    loses: Write | None = None,
) -> None:
    """A task of a playbook."""
    try:
        result = task.carry_out(
            options_of(resource, name, url, identifier),
            _context(run),
            lambda service: _recording(run, at, controller, url=service, loses=loses),
        )
    except ServicesError as error:
        result = Result.of_error(error)
    run.told.append(Told(run.world.process.name, name, result))


def send_there(run: Run, at: str = "B", name: str = NAME) -> None:
    """A task that uses a ledger once it is there."""
    if run.world.wait(lambda: run.places[at].header("state") == sql.IN_USE):
        send(run, at, name=name)


def send_list(
    run: Run,
    names: str = NAME,
    controller: str = "c",
    approved: bool = False,
    loses: Write | None = None,
) -> None:
    """A list, which looks at its end whether the ledger has lost what it recorded."""
    who = run.world.process.name
    results: dict[str, Result] = {}
    lacking = names.split()  # at its end, as it says
    try:
        recording = _recording(run, "A", controller, approved, loses=loses)
        given = (options_of_list(names), _context(run), lambda _service: recording)
        results = carry_out_list(*given, run.approved if approved else None).results
        recording.recover()  # fails if it could not look, or not mend what was lost
        lacking = []
    except ServicesError as error:
        results = results or dict.fromkeys(lacking, Result.of_error(error))
    run.told += [Told(who, *each, each[0] not in lacking) for each in results.items()]


def plan(run: Run, names: str = NAME) -> None:
    """Make a plan, which is approved."""
    recording = _recording(run)
    listed = carry_out_list(options_of_list(names), _context(run, True), lambda _url: recording)
    run.approved = {
        name: row.but(body=dict(row.body or {})) for name, row in listed.results.items()
    }


def interrupt(run: Run) -> None:
    """A user presses Ctrl-C while the first task sends."""
    if run.world.wait(lambda: run.requests > 0):
        run.world.actors[0].process.why_to_stop = "interrupted"


# Persons


def settle(
    run: Run,
    at: str = "A",
    is_looking: bool = True,
    is_patient: bool = True,
    controller: str = "p",
) -> None:
    """A user settles what is in doubt.

    `is_looking`: at the service before that; `is_patient`: only once the ledger says it is in doubt.
    """

    def is_in_doubt() -> bool:
        entry = run.places[at].entry(NAME)
        return bool(entry and entry.state != "done" and not (is_patient and entry.is_running))

    if not run.world.wait(is_in_doubt):
        return
    with suppress(ServicesError):
        found = run.opened(at, controller=controller)
        listed = list_entries(found, {**_FILTERS, "states": ["in_doubt"]})
        for entry in [*listed["entries"], *([] if is_patient else listed["in_flight"])]:
            run.world.point("a look at the service")
            machines = run.existing(NAME)[-1:] if is_looking else []
            _edit(found, NAME, machines[0].id if machines else None, entry["changed_at"])


def _edit(
    opened: Ledger, name: str, identifier: str | None, changed_at: str | None = None, **more: object
) -> None:
    """Record a machine as present, or as absent without its id."""
    asset = {"id": identifier, "attributes": {}} if identifier else None
    given: dict[str, object] = dict(resource=CREATE, name=name, changed_at=changed_at, asset=asset)
    given["state"] = "present" if identifier else "absent"
    given = {**dict.fromkeys(LEDGER_ENTRY.item_options), **given, "entries": None, **more}
    edits, _result = edits_of(opened, given, _SECRETS)
    if edits:
        write_edits(opened, edits, "")


def forget(run: Run, at: str = "A", name: str = NAME) -> None:
    """A user deletes a machine on the service, and forgets it."""

    def is_done() -> bool:
        entry = run.places[at].entry(name)
        return bool(entry and entry.state == "done")

    if not run.world.wait(is_done):
        return
    with suppress(ServicesError):
        opened = run.opened(at, controller="p")
        for machine in run.existing(name):
            machine.exists = False
            given = {"id": machine.id, "attributes": {}}
            _edit(opened, name, None, asset=given)
            run.forgotten.add(name)


def adopt(run: Run, name: str) -> None:
    """A user records the machine that was there before, under a name of his own."""
    with suppress(ServicesError):
        _edit(run.opened("A", controller="p"), name, "vm-0")


def settle_report(run: Run, of: int = 0) -> None:
    """A user settles the report of a run, once it has ended."""
    who = run.world.actors[of].process.name
    if not run.world.wait(lambda: any(told.who == who for told in run.told)):
        return
    rows = [_row(told) for told in run.told if told.who == who and told.result.began is not None]
    with suppress(ServicesError):
        opened = run.opened("A", controller="p")
        edits, _result = edits_of_report(opened, rows, _SECRETS)
        if edits:
            write_edits(opened, edits, "")


def _row(told: Told) -> dict[str, object]:
    result = told.result
    asset = dict(result.asset) if result.asset and result.changed else None
    is_doubt = asset is None and result.outcome in (ACCEPTED, UNKNOWN)
    state = result.outcome if is_doubt else ""
    at = entries.current_time()
    return dict(
        resource=CREATE, name=told.name, began=result.began, asset=asset, state=state, at=at
    )


# What happens to a ledger


def restore(run: Run, at: str = "A", is_early: bool = False) -> None:
    """Somebody makes a backup at any moment, and puts it back at any later one.

    `is_early`: while a request is in flight that began later.
    """
    backup = run.places[at].copy()
    if is_early and not run.world.wait(lambda: bool(run.places[at].entries())):
        return
    run.world.point("a backup")
    run.places[at].put_back(backup)
    run.restored = len(run.told)
    run.world.log.append("the backup was put back")


def replace(run: Run, at: str = "A") -> None:
    """Somebody has another ledger there for a while."""
    place = run.places[at]
    ours = place.copy()
    place.connection.execute(f"UPDATE {sql.LEDGER} SET ledger_id = ?", [FOREIGN])
    for table in (sql.ENTRY, sql.HISTORY):
        place.connection.execute(f"DELETE FROM {table}")
    run.world.point("another ledger")
    writers = place.rows(f"SELECT run FROM {sql.HISTORY}")
    if any(run.began_with[who] != FOREIGN for (who,) in writers):
        run.problems.append("a task wrote into another ledger than it began with")
    place.put_back(ours)


def set_clock(run: Run, seconds: int = -600) -> None:
    """Somebody sets the clock back while a request is in flight."""
    if run.world.wait(lambda: any(entry.is_running for entry in run.places["A"].entries())):
        run.places["A"].offset = seconds


def move(run: Run, to: str = "B", at: str = "A") -> None:
    """A user moves a ledger."""
    with suppress(ServicesError):
        source = run.opened(at, is_moving=True)
        source.find([])
        move_ledger(source, run.database(to), run.seen(), False)


def move_on(run: Run) -> None:
    """A user moves the ledger from its target to another place."""
    if run.world.wait(lambda: run.places["B"].header("state") == sql.IN_USE):
        move(run, "C", "B")


def remove(run: Run, at: str = "B") -> None:
    """A user deletes what is of no use there: a reservation, or what was moved on."""

    def is_useless() -> bool:
        state = run.places[at].header("state")
        is_earlier = state == sql.FILLED and run.places["C"].header("state") == sql.IN_USE
        return state == sql.FILLING or is_earlier

    if run.world.wait(is_useless):
        run.world.point("a removal")
        if is_useless():
            run.places[at].remove()


def change_url(run: Run) -> None:
    """A user gives the ledger the new URL of its service, and runs the task again."""
    with suppress(ServicesError):
        opened = run.opened("A", is_moving=True)
        opened.find([])
        set_base_url(opened, NEW_URL, False)
        send(run, url=NEW_URL)
