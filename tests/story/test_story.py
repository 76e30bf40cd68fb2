"""The commands that the documents name, in any order, as one person gives them.

After each step: no machine is created twice, unless the person removed it, or wanted no ledger;
nothing accepted is lost; the ledger has no id that neither the service nor the person gave; after a
move, one of the two ledgers is in use.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    Entry,
    Key,
)
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine
from ledger.entries import end_leases
from story.commands import Ended, Terminal
from story.world import ANSWER, DROP, FATES, LONG, LOSE, QUICK, Creation, Model
from support import CREATE
from support.ledgers import opened, put
from support.wire import running

NAMES = ("web01", "web02")
OUTCOMES = {"not_sent", "rejected", "accepted", "unknown"}
SOME_NAMES = st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True)
DOUBTS = st.fixed_dictionaries({name: st.sampled_from([LOSE, DROP]) for name in NAMES})
SOME_FATES = st.fixed_dictionaries({name: st.sampled_from(FATES) for name in NAMES})
MISSING, OLDER = "there is no ledger at", "has gone back in time"


class Plan(NamedTuple):
    """A plan that was written, and what was the case then."""

    file: str
    names: tuple[str, ...]
    creations: int  # how many the ledger had seen


def known(entry: dict) -> tuple[str, str]:
    """Return what is known of a machine: its state and its id."""
    return entry["state"], (entry["asset"] or {}).get("id", "")


class Person(RuleBasedStateMachine):
    """One person with one ledger, who also runs without one, and repairs that."""

    plans = Bundle("plans")  # files of plans, old ones too
    lists = Bundle("lists")  # files of what was in doubt, filled in when they were written

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.model = Model()
        self._server = running(self.model.choose)
        self.service = self._server.__enter__()
        self.terminal = Terminal(self.directory, self.service.url)
        self.ledger = self.path("fleet.db")
        self.left: list[str] = []  # places from which the ledger was moved away
        self.number = 0  # of the next file
        self.created_here: list[str] = []  # names in the order of the history; '' if taken back
        self.recorded: dict[str, str] = {}  # the ids that the ledger has to know, by name
        self.released: set[str] = set()  # names that may be created, since the person said so
        self.given_ids: set[str] = set()

    def teardown(self) -> None:
        self._server.__exit__(None, None, None)
        shutil.rmtree(self.directory)

    def new_file(self, ending: str) -> str:
        self.number += 1
        return self.path(f"{self.number}.{ending}")

    def path(self, file: str) -> str:
        return str(self.directory / file)

    def send(self, names: list[str], fates: dict[str, str], **more) -> Ended:
        """Run the list, and check each creation of the service."""
        self.model.fates, self.model.created_now = fates, []
        before = {name: bool(self.model.existing(name)) for name in NAMES}
        ledger = more.pop("ledger", self.ledger)
        ended = self.terminal.send_list(names, ledger, **more)
        assert ended.result["outcome"] in OUTCOMES
        if ledger == self.ledger:
            for name in self.model.created_now:
                self.check_creation(name, before[name])
            self.created_here += self.model.created_now
            for item in ended.result.get("results", []):
                self.remember(item["item"], item)
        return ended

    def check_creation(self, name: str, is_second: bool) -> None:
        """Require a reason for a second creation, and expect the ledger to know it from now on."""
        assert name in self.released or not is_second, f"{name} was created again"
        self.released.discard(name)

    def remember(self, name: str, result: dict) -> None:
        """Remember what the ledger has to know after the result of one machine."""
        if result["outcome"] == "accepted" and result.get("asset"):
            self.recorded[name] = result["asset"]["id"]
        elif result["outcome"] in ("accepted", "unknown"):
            self.recorded.pop(name, None)  # now in doubt

    @initialize()
    def begin(self) -> None:
        assert self.terminal.create_ledger(self.ledger).result["changed"]
        self.send(["web01"], {"web01": ANSWER})

    @rule(names=SOME_NAMES, fates=SOME_FATES)
    def run_the_list(self, names, fates) -> None:
        self.send(names, fates)

    @rule(how=st.sampled_from(["fail", "warn"]))
    def want_another_size(self, how) -> None:
        """What is recorded stays as it is, and by default the list fails."""
        ended = self.send([*self.recorded], {}, on_difference=how, cpu=8)
        assert self.model.created_now == []
        assert bool(ended.result.get("failed")) == (how == "fail" and bool(self.recorded))

    @rule(name=st.sampled_from(NAMES), fate=st.sampled_from(FATES))
    def run_one_task(self, name, fate) -> None:
        self.model.fates, self.model.created_now = {name: fate}, []
        before = bool(self.model.existing(name))
        ended = self.terminal.send_one(name, self.ledger)
        assert ended.result["outcome"] in OUTCOMES
        if self.model.created_now:
            self.check_creation(name, before)
            self.created_here.append(name)
        self.remember(name, ended.result)

    @rule(names=SOME_NAMES, forgets=st.booleans(), fates=st.none() | SOME_FATES, target=plans)
    def plan(self, names, forgets, fates):
        """A plan, which is refused for another ledger, and may be run at once (`fates`)."""
        for name in names if forgets else ():
            self.forget(name)
        file = self.new_file("json")
        self.terminal.send_list(names, self.ledger, check_mode=True, report=file)
        file = file.replace(".json", ".plan.json")
        other = self.new_file("db")
        self.terminal.create_ledger(other)
        self.send_nothing(names, approved=file, ledger=other)
        plan = Plan(file, tuple(names), len(self.created_here))
        if fates:
            self.run_an_approved_plan_twice(plan, fates)
        return plan

    @rule(plan=plans, fates=SOME_FATES)
    def run_an_approved_plan_twice(self, plan, fates) -> None:
        """Between the two, the person deletes the machines that the plan creates."""
        self.run_plan(plan, fates)
        for name in plan.names:
            self.forget(name)
        self.run_plan(plan, fates)

    def run_plan(self, plan: Plan, fates: dict[str, str]) -> None:
        """A plan, an old one too, is good for one creation of each of its machines."""
        since = set(self.created_here[plan.creations :])
        self.send(list(plan.names), fates, approved=plan.file)
        assert since.isdisjoint(self.model.created_now)

    def send_nothing(self, names: list[str], **more) -> str:
        """Run a list that is refused; return what it said."""
        ended = self.send(names, {}, **more)
        assert ended.result["failed"]
        assert self.model.created_now == []
        return ended.said

    @rule()
    def misspell_the_ledger(self) -> None:
        """The person creates it once more, under its name, and for another service."""
        assert MISSING in self.send_nothing([*NAMES], ledger=self.new_file("typo.db"))
        assert self.terminal.create_ledger(self.ledger).result["changed"] is False
        assert self.terminal.create_ledger(self.ledger, base_url="https://x").result["failed"]

    @rule(names=SOME_NAMES)
    def run_without_a_ledger(self, names) -> None:
        """The person deletes what there was already, and adopts the rest."""
        before = len(self.model.machines)
        self.send(names, {}, ledger="none")
        assert sorted(self.model.created_now) == sorted(names)
        for machine in self.model.machines[before:]:
            if machine.name in self.recorded:
                machine.exists = False  # a duplicate, which the person deletes on the service
            else:
                self.adopt_machine(machine)

    @rule(
        target=lists,
        names=SOME_NAMES,
        fates=DOUBTS,
        blank=st.sets(st.sampled_from(NAMES)),
        settles=st.booleans(),
    )
    def list_in_doubt(self, names, fates, blank, settles):
        """Lose the answers for new machines, write the file, and fill in what is true then."""
        for name in self.recorded.keys() & set(names):
            self.forget(name)
        self.send(names, fates)
        path = Path(self.new_file("csv"))
        self.terminal.list_in_doubt(self.ledger, str(path))
        seen = self.model.fill_in(path, blank)
        filled_in = path.read_bytes()
        self.terminal.list_in_doubt(self.ledger, str(path))
        assert path.read_bytes() == filled_in or not seen
        if settles:
            self.settle_by((str(path), seen))
        return str(path), seen

    @rule(list_file=lists, fates=DOUBTS)
    def settle_by_an_old_list(self, list_file, fates) -> None:
        """The person has deleted machines meanwhile, and created them again in doubt."""
        for name in list_file[1]:
            self.forget(name)
        self.send([*list_file[1]], fates)
        self.settle_by(list_file)

    def settle_by(self, list_file: tuple[str, dict[str, str]]) -> None:
        """Settle by a list, which changes only the entries that it is about, also if it is old."""
        file, seen = list_file
        before = self.states()
        self.terminal.settle(self.ledger, file)
        after = self.states()
        for name, entry in before.items():
            if entry == after.get(name):
                continue
            assert entry["changed_at"] == seen.get(name), f"{name} has changed since {file}"
            if name in after:
                self.recorded[name] = after[name]["asset"]["id"]
            else:
                self.released.add(name)
                self.recorded.pop(name, None)

    @rule(name=st.sampled_from(NAMES))
    def forget(self, name) -> None:
        """The person deletes the machines on the service, then removes the entry."""
        for machine in self.model.existing(name):
            machine.exists = False
        entry = self.states().get(name)
        self.terminal.edit(self.ledger, name, state="absent")
        if name not in self.states():
            if entry and entry["state"] != "done" and name in self.created_here:
                # The ledger is told that the last creation, whose answer was lost, did not happen.
                last = len(self.created_here) - 1 - self.created_here[::-1].index(name)
                self.created_here[last] = ""
            self.recorded.pop(name, None)
            self.released.add(name)

    @rule(name=st.sampled_from(NAMES))
    def adopt(self, name) -> None:
        if self.model.existing(name):
            self.adopt_machine(self.model.existing(name)[-1])

    def adopt_machine(self, machine) -> None:
        self.given_ids.add(machine.id)
        asset = {"id": machine.id, "attributes": {"cpu": 4}}
        ended = self.terminal.edit(self.ledger, machine.name, asset=asset)
        if not ended.result.get("failed"):
            self.recorded[machine.name] = machine.id
            self.released.discard(machine.name)

    @rule()
    def move(self) -> None:
        target = self.new_file("db")
        has_intent = self.has_intent()
        ended = self.terminal.move(self.ledger, target)
        if has_intent:
            assert "settle those that are in doubt" in ended.said
            return
        assert not ended.result.get("failed"), ended.said
        self.left.append(self.ledger)
        self.ledger = target

    @rule(data=st.data())
    def move_back_or_use_an_old_place(self, data) -> None:
        """Both are refused, and nothing is sent."""
        if not self.left:
            return
        old = data.draw(st.sampled_from(self.left))
        assert self.terminal.move(self.ledger, old).result["failed"]
        assert self.terminal.create_ledger(old).result["failed"]
        self.send_nothing([*NAMES], ledger=old)

    @rule(name=st.sampled_from(NAMES), is_carried_out=st.booleans())
    def kill_a_task(self, name, is_carried_out) -> None:
        """Until its lease ends, nobody can settle what it began, or move the ledger."""
        if name in self.states():
            return
        before = bool(self.model.existing(name))
        with opened(self.ledger) as ledger:
            body = {"name": name, "attributes": {"cpu": 4}}
            put(ledger, Key(CREATE, name), Entry("intent", body, {}), lease_seconds=300)
        if is_carried_out:
            self.model.machines.append(Creation(name, f"vm-{len(self.model.machines)}"))
            self.check_creation(name, before)
            self.created_here.append(name)
        recorded = self.terminal.recorded(self.ledger).result
        assert [entry["name"] for entry in recorded["in_flight"]] == [name]
        assert self.terminal.edit(self.ledger, name, state="absent").result["failed"]
        assert self.terminal.move(self.ledger, self.new_file("db")).result["failed"]
        end_leases(self.ledger)

    @rule(names=SOME_NAMES)
    def give_the_service_a_new_url(self, names) -> None:
        """The former URL is refused."""
        before = self.terminal.base_url
        self.number += 1
        after = f"{self.service.url}/{self.number}"
        ended = self.terminal.change_url(self.ledger, after)
        if self.has_intent():
            assert ended.result["failed"]
            return
        assert ended.result["changed"], ended.said
        self.terminal.base_url = after
        self.send_nothing(names, base_url=before)

    @rule(runs=st.lists(st.tuples(SOME_NAMES, SOME_FATES), min_size=1, max_size=3))
    def restore_a_backup(self, runs) -> None:
        """Nothing is sent until the runs since are settled by their reports, from the oldest on.

        A machine that was forgotten before the backup, and created since, is recorded by its id.
        """
        forgotten = set(self.released)
        backup = self.new_file("backup")
        serial = self.terminal.recorded(self.ledger).result["serial"]
        shutil.copy(self.ledger, backup)
        reports = [self.new_file("json") for _run in runs]
        for (names, fates), report in zip(runs, reports):
            self.send(names, fates, report=report)
        recorded = self.terminal.recorded(self.ledger)
        assert OLDER not in recorded.said
        before = {name: known(entry) for name, entry in self.states().items()}
        shutil.copy(backup, self.ledger)
        if recorded.result["serial"] != serial:
            assert OLDER in self.terminal.recorded(self.ledger).said
            ended = self.send([*NAMES], {})
            assert self.model.created_now == []
            assert OLDER in ended.said
        for report in reports:
            ended = self.terminal.settle(self.ledger, report)
            assert not ended.result.get("failed"), ended.said
            left = " ".join(ended.result["names"]["left"])
            for name in [name for name in NAMES if name in left]:
                assert name in forgotten
                self.adopt(name)
                before.pop(name, None)
                shutil.rmtree(self.path("home"))  # the note: the row is not given back
        assert OLDER not in self.terminal.recorded(self.ledger).said
        after = {name: known(entry) for name, entry in self.states().items()}
        assert before == {name: after[name] for name in before}

    def states(self) -> dict[str, dict]:
        entries = self.terminal.recorded(self.ledger).result["entries"]
        return {entry["name"]: entry for entry in entries}

    def has_intent(self) -> bool:
        """Whether a task was killed and nobody has settled what it began."""
        return "intent" in [entry["state"] for entry in self.states().values()]

    @invariant()
    def nothing_accepted_is_lost(self) -> None:
        known = {
            name: entry["asset"]["id"]
            for name, entry in self.states().items()
            if entry["state"] == "done" and entry["asset"]
        }
        assert {name: known.get(name) for name in self.recorded} == self.recorded
        assert set(known.values()) <= self.model.ids() | self.given_ids

    @invariant()
    def one_place_is_in_use(self) -> None:
        for place in self.left[-1:]:
            assert self.terminal.recorded(place).result.get("failed")


SETTINGS = settings(
    phases=(Phase.generate,),  # the seed is fixed; shrinking takes minutes
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize(
    "how", [QUICK, pytest.param(LONG, marks=pytest.mark.stress)], ids=["quick", "long"]
)
def test_no_order_of_commands_creates_twice_or_loses(how):
    drawn = settings(SETTINGS, max_examples=how.count, stateful_step_count=how.commands)
    run_machine(Person, settings=drawn)
