"""Who acts in a run: tasks, movers, users; and the service."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from ansible_collections.infrastructure.services.plugins.module_utils._call.client import (
    Context,
    Lease,
)
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    ACCEPTED,
    REJECTED,
    UNKNOWN,
    Message,
    ServicesError,
)
from ansible_collections.infrastructure.services.plugins.module_utils._result import Result
from ansible_collections.infrastructure.services.plugins.module_utils._secrets import Secrets
from ansible_collections.infrastructure.services.plugins.module_utils._task.options import (
    settings_from,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    LEDGER_ENTRY,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.task import (
    Task,
    perform,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    Options,
    validate,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import sql
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.editing import (
    edits_of,
    write_edits,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.ledger import Ledger
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
from support.turns import LEASE, World

from .places import Changed, Connection, Place

URL, NEW_URL = "https://service", "https://new"
NAME, OTHER = "web01", "web00"
_SECRETS = Secrets()
_CONTEXT = Context(False, _SECRETS)
_TIMEOUT = 120
_IN_DOUBT = dict(
    names=None,
    states=["in_doubt"],
    resource=None,
    run=None,
    changed_since=None,
    history=False,
    summary=False,
    file=None,
    table=False,
)
_TOO_MANY = "429"
# What may become of a request: whether it is carried out, and the outcome.
_FATES = {
    "refused": (False, REJECTED),
    "lost": (False, UNKNOWN),
    "carried out, the answer lost": (True, UNKNOWN),
    "carried out, the answer unusable": (True, ACCEPTED),
}


@cache
def options_of(resource: str, name: str) -> Options:
    option = {"name": name} if resource == CREATE else {"id": name, "attributes": {"login": True}}
    given = {"base_url": URL, "access_token": "t", **LEAST[resource], **option}
    return validate(SPECS[resource], given)


@cache
def wanted(resource: str, name: str) -> Task:
    options = options_of(resource, name)
    return options.spec.sent.task(options.params, settings_from(options.params))


@dataclass
class Asset:
    """What a request created or updated."""

    id: str
    name: str
    by: str
    exists: bool = True


class Told(NamedTuple):
    """The result of a task."""

    who: str
    name: str
    result: Result
    place: Place


class Run:
    """What one run has: the world, the places of ledgers, the service, and all results."""

    def __init__(
        self,
        world: World,
        tried_for: float = 0,
        changed: Changed | None = None,
        connection: type[Connection] = Connection,
    ) -> None:
        """`changed`, `connection`: make a defect."""
        self.world = world
        self.tried_for = tried_for
        self.changed = changed
        self.connection = connection
        self.places = {name: Place(world, name) for name in ("A", "B", "C")}
        self.assets: list[Asset] = []
        self.told: list[Told] = []
        self.problems: list[str] = []
        self.in_flight: list[str] = []  # the assets of the requests that may arrive
        self.base_urls = {URL}

    def close(self) -> None:
        """Close the databases: a function that SQLite calls keeps the world in memory until then."""
        for place in self.places.values():
            place.connection.close()

    def open(self, at: str, base_url: str = URL, **how: bool) -> Ledger:
        """Open the ledger at a place."""
        place = self.places[at]
        connection = self.connection(self.world, place, self.tried_for, self.changed)
        ledger = Ledger(connection, base_url, **how)
        ledger.sleep = self.world.sleep
        return ledger

    def who(self) -> str:
        return self.world.running.name if self.world.running else "before"

    def existing(self, name: str) -> list[Asset]:
        return [asset for asset in self.assets if asset.name == name and asset.exists]

    # The service

    def carry_out(self, task: Task) -> Asset:
        """Carry out a request."""
        name = task.key
        if not task.operation.creates:
            self.assets[:] = [asset for asset in self.assets if asset.name != name]
            asset = Asset(name, name, self.who())
        else:
            if self.existing(name):
                self.problems.append(f"{name} was created twice")
            asset = Asset(f"vm-{len(self.assets)}", name, self.who())
        self.assets.append(asset)
        return asset


class Sender:
    """Sends the request of one task."""

    has_ended = True
    lease_seconds = LEASE

    def __init__(self, run: Run, task: Task, is_suspended: bool) -> None:
        """`is_suspended`: after a first answer with 429, for longer than its lease."""
        self._run = run
        self._task = task
        self._is_suspended = is_suspended

    def ready(self) -> bool:
        return True

    def send(self, lease: Lease) -> Result:
        """Send it, at most twice."""
        world = self._run.world
        try:
            fate = _TOO_MANY if self._is_suspended else self._attempt(lease)
            if fate == _TOO_MANY:
                world.sleep(LEASE if self._is_suspended else 1)
                lease.renew(0)
                fate = self._attempt(lease)
        except ServicesError as error:
            return Result.of_error(error)
        return fate if isinstance(fate, Result) else _failed(REJECTED)

    def _attempt(self, lease: Lease) -> Result | str:
        """Send it if the lease allows it: then it arrives before the lease ends."""
        run, world = self._run, self._run.world
        world.point("the look at the lease")
        lease.require(_TIMEOUT)
        name = self._task.key
        if name in run.in_flight:
            run.problems.append(f"two requests for {name} at once")
        run.in_flight.append(name)
        world.in_flight += 1
        try:
            fate = world.point("the request", [*_FATES, _TOO_MANY])
        finally:
            run.in_flight.remove(name)
            world.in_flight -= 1
        if fate == _TOO_MANY:
            return fate
        is_done, outcome = _FATES.get(fate, (True, ACCEPTED))
        asset = run.carry_out(self._task) if is_done else None
        world.point("the answer")
        if asset is None or fate:
            return _failed(outcome)
        envelope = {"name": asset.name, "id": asset.id, "attributes": {}}
        return Result(changed=True, outcome=outcome, asset=envelope)


def _failed(outcome: str) -> Result:
    said = Message("it failed")
    return Result(failed=True, changed=outcome == ACCEPTED, outcome=outcome, msg=said)


def recording_of(run: Run, at: str, approved_rows: dict[str, int] | None = None) -> Recording:
    """Open the ledger for tasks."""
    recording = Recording(
        run.open(at),
        _SECRETS,
        run.who(),
        approved_rows,
        pause=lambda _seconds: run.world.sleep(20),
    )
    recording.clocks = lambda: (run.world.now,)
    return recording


def send(
    run: Run,
    at: str = "A",
    resource: str = CREATE,
    name: str = NAME,
    approved_rows: dict[str, int] | None = None,
    is_suspended: bool = False,
) -> None:
    """A task of a playbook."""
    try:
        recording = recording_of(run, at, approved_rows)
        (task,) = recording.plan_all([wanted(resource, name)])  # as one of a list: planned once
        result = perform(
            task, _CONTEXT, recording, lambda task, _context: Sender(run, task, is_suspended)
        )
    except ServicesError as error:
        result = Result.of_error(error)
    run.told.append(Told(run.who(), name, result, run.places[at]))


def send_there(run: Run, at: str) -> None:
    """A task that uses a ledger once it is there."""
    if run.world.wait(lambda: run.places[at].state() == sql.IN_USE):
        send(run, at)


def settle(
    run: Run,
    at: str = "A",
    is_looking: bool = True,
    is_patient: bool = True,
    is_slow: bool = False,
) -> None:
    """A user settles what is in doubt.

    `is_looking`: at the service before that; `is_patient`: only once the ledger says it is in doubt;
    `is_slow`: long after the look at the service.
    """

    def is_in_doubt() -> bool:
        entry = run.places[at].entry(NAME)
        return bool(entry and entry.state != "done" and not (is_patient and entry.is_running))

    if not run.world.wait(is_in_doubt):
        return
    try:
        ledger = run.open(at)
        for entry in list_entries(ledger, _IN_DOUBT)["entries"]:
            if not is_looking and entry["state"] != "intent":
                continue
            run.world.point("a look at the service")
            found = run.existing(NAME)[-1:] if is_looking else []
            asset = {"id": found[0].id, "attributes": {}} if found else None
            if is_slow:
                run.world.sleep(2 * LEASE)
            _edit(ledger, "present" if asset else "absent", asset, entry["changed_at"])
    except ServicesError as error:
        run.world.log.append(f"{run.who()}: {error}")


def _edit(ledger: Ledger, state: str, asset: dict | None, changed_at: str | None = None) -> None:
    given = dict(resource=CREATE, name=NAME, state=state, asset=asset, changed_at=changed_at)
    params = {**dict.fromkeys(LEDGER_ENTRY.item_options), **given, "entries": None}
    edits, _result = edits_of(ledger, params, _SECRETS)
    if edits:
        write_edits(ledger, edits, "")


def forget(run: Run, at: str = "A") -> None:
    """A user deletes a machine on the service, and forgets it."""

    def is_done() -> bool:
        entry = run.places[at].entry(NAME)
        return bool(entry and entry.state == "done")

    if not run.world.wait(is_done):
        return
    try:
        ledger = run.open(at)
        for machine in run.existing(NAME):
            machine.exists = False
            _edit(ledger, "absent", {"id": machine.id, "attributes": {}})
    except ServicesError as error:
        run.world.log.append(f"{run.who()}: {error}")


def restore(run: Run, at: str = "A") -> None:
    """Somebody restores an old copy of the ledger, which is empty, while a request is in flight."""

    def is_in_flight() -> bool:
        entry = run.places[at].entry(NAME)
        return bool(entry and entry.state == "intent")

    if run.world.wait(is_in_flight):
        run.world.point("a restored backup")
        if is_in_flight():
            for table in (sql.ENTRY, sql.HISTORY):
                run.places[at].rows(f"DELETE FROM {table}")


def move(run: Run, to: str = "B", at: str = "A") -> None:
    """A user moves a ledger."""
    try:
        source, target = (run.open(place, "", is_moving=True) for place in (at, to))
        move_ledger(source, target, False)
    except ServicesError as error:
        run.world.log.append(f"{run.who()}: {error}")


def change_url(run: Run) -> None:
    """A user gives the ledger the new URL of its service, and runs the task again."""
    try:
        set_base_url(run.open("A", ""), NEW_URL, check_mode=False)
    except ServicesError as error:
        run.world.log.append(f"{run.who()}: {error}")
