"""A list in virtual time: its service, its ledger, its token endpoint, other tasks, signals; and
what holds at its end.
"""

from __future__ import annotations

import json
import math
import random
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from unittest.mock import patch

from ansible_collections.infrastructure.services.plugins.module_utils._call import attempt, tokens
from ansible_collections.infrastructure.services.plugins.module_utils._call.tokens import Memory
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    ACCEPTED,
    NOT_SENT,
    REJECTED,
    UNKNOWN,
    AttemptFailed,
    outcome_of,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http import (
    Answer,
    transport,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task import task
from ansible_collections.infrastructure.services.plugins.module_utils._task.journal import NoLedger
from ansible_collections.infrastructure.services.plugins.module_utils._task.loop import (
    GRACE,
    Loop,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.options import (
    settings_from,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.signals import (
    Interrupted,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    INTENT,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.recording import (
    Recording,
    key_of,
)

from support import CREATE, SPECS, UPDATE, validate
from support.book import Book
from support.virtual_time import VirtualTime

RUN = "run-1"
NEVER = math.inf


@dataclass(frozen=True)
class Scenario:
    """What happens to a list."""

    items: int = 20
    most: int = 8  # requests at once
    resource: str = CREATE
    fates: dict[str, float] = field(default_factory=dict)  # the part of the requests that meet it
    lookups: tuple[float, ...] = (0.0,)  # seconds before the first byte
    takes: tuple[float, ...] = (0.02, 0.5, 3.0)  # seconds until the answer
    retry_after: float = 5.0
    retries: int = 3
    max_unknown: int = 0
    fetches: bool = False  # the token
    token_takes: float = 0.1
    token_fails: float = 0.0
    token_lives: float = 3600  # seconds
    token_lock: tuple[float, bool] = (0.0, False)  # until when another process has it, and fetches
    revoked_at: float = NEVER  # the first token; 0: none is accepted
    signal: tuple[float, float] = (NEVER, NEVER)  # between which seconds it comes
    others: tuple[tuple[float, int, float], ...] = ()  # when, which, how long
    lost: tuple[tuple[float, int], ...] = ()  # when which intent is gone
    adopts: bool = False
    ledger: bool = True
    book: dict[str, object] = field(default_factory=dict)
    threads: float = NEVER
    raises: tuple[str, float] = ("", 0)  # what meets a defect of ours, how often
    stops: bool | None = False  # whether a reason to stop is expected, None for either
    seconds: float = NEVER  # that it takes at most


class World:
    """A list with its service, its ledger, and the other tasks."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self.s = scenario
        self.chance = random.Random(seed)
        self.time = VirtualTime()
        self.book = Book(self.time, self.chance, **scenario.book)
        self.memory = _Memory(self)
        self.machines: dict[str, list[str]] = {}  # who made it
        self.effects: dict[str, list[str]] = {}  # of the attempts, by name
        self.loops: list[Loop] = []
        self.sent = 0
        self.token = 1  # the number of the valid one
        self.stopped_at = self.ended_at = NEVER
        self.problems: list[str] = []
        self.raised = 0
        first, last = scenario.signal
        self.signal_at = first if first == NEVER else self.chance.uniform(first, last)

    def options(self):
        given = {
            "base_url": "http://127.0.0.1:9",
            "timeout": 20,
            "retries": self.s.retries,
            "retry_max_delay": 30,
            "access_token": "token-1-of-the-tests",
        }
        if self.s.fetches:
            del given["access_token"]
            given.update(auth_url="http://127.0.0.1:9/token", client_id="me")
            given.update(client_secret="secret-of-the-tests")
        if self.s.resource == CREATE:
            return validate(SPECS[CREATE], {**given, "name": "vm", "ledger": "none"})
        return validate(SPECS[UPDATE], {**given, "id": "vm", "attributes": {"login": True}})

    def run(self) -> task.Results:
        """Carry out the list, and look at what holds."""
        options = self.options()
        spec, settings = options.spec, settings_from(options.valid())
        names = [f"vm{number:03}" for number in range(self.s.items)]
        given = options.params
        if self.s.adopts:
            given = {**given, "id": "id-1"}
        tasks = [spec.sent.task({**given, spec.key: name}, settings) for name in names]
        self.book.sleep = self.pause
        recording = Recording(self.book, options.secrets, RUN, pause=self.pause)
        recording.clocks = lambda: (self.time.now,)
        for what in ("outcome", "write", "finished"):
            setattr(recording, what, self.failing(what, getattr(recording, what)))
        ledger = recording if self.s.ledger else NoLedger()
        context = task.Context(
            False, options.secrets, memory=self.memory, why_to_stop=self.why_to_stop
        )
        for at, number, seconds in self.s.others:
            self.time.at(at, partial(self.begin_elsewhere, key_of(tasks[number]), seconds))
        for at, number in self.s.lost:
            self.time.at(at, partial(self.book.lose, key_of(tasks[number])))
        self.time.at(self.s.revoked_at, self.revoke)
        limits = task.Limits(self.s.most, 30.0, self.watch)
        random.seed(1)
        with (
            patch.object(transport, "send_once", self.send_once),
            patch.object(attempt.time, "monotonic", self.time.clock),
            patch.object(tokens, "time", SimpleNamespace(time=lambda: 1e9 + self.time.now)),
            patch.object(task, "Loop", self.new_loop),
        ):
            done = task.carry_out_all(ledger.plan_all(tasks), context, ledger, limits)
            self.ended_at = self.time.now
            if self.time.answers:
                self.problems.append("an answer was not taken")
            self.time.take(400.0)  # what its threads still do
        for each in tasks:
            self.look_at(each, done.results[each.key])
        self.look_at_end(done)
        return done

    def failing(self, what: str, act):
        def failing(*given, **more):
            self.fail_in(what)
            return act(*given, **more)

        return failing

    def new_loop(self, *given, **more) -> Loop:
        given[3].adapt = self.failing("adapt", given[3].adapt)
        self.loops.append(Loop(*given, clock=self.time.clock, queue=self, start=self.start, **more))
        return self.loops[-1]

    # The queue and the threads

    def get(self, timeout: float):
        if self.loops[-1].reason:
            self.stopped_at = min(self.stopped_at, self.time.now)
        job, answer = self.time.get(timeout)
        if job and answer.attempt.event.effect == UNKNOWN and self.s.max_unknown == 1:
            self.stopped_at = self.time.now
        return job, answer

    def put(self, answer) -> None:
        job, answered = answer
        if job:
            effects = self.effects.setdefault(job.work.task.key, [])
            effects.append(answered.attempt.event.effect)
        self.time.put(answer)

    def start(self, work, *given) -> None:
        if self.time.threads >= self.s.threads:
            raise RuntimeError("can't start new thread")
        if not given:
            self.time.run_at(self.time.now + self.s.token_takes, work)
            return
        if self.time.now >= min(self.stopped_at, self.signal_at):
            self.problems.append("an attempt began after a reason to stop")
        self.time.run_at(self.time.now + self.chance.choice(self.s.lookups), work, *given)

    # Reasons to stop

    def pause(self, seconds: float) -> None:
        """Wait, as an action does."""
        self.time.take(seconds)
        if self.time.now >= self.signal_at:
            raise Interrupted("SIGINT")

    def why_to_stop(self) -> str:
        self.fail_in("watch")
        if self.time.now < self.signal_at:
            return ""
        self.stopped_at = min(self.stopped_at, self.time.now)
        return "SIGINT"

    def fail_in(self, what: str) -> None:
        """Let the main thread meet a defect, once or again and again."""
        where, times = self.s.raises
        if where == what and self.time.now > 1 and self.raised < times:
            self.raised += 1
            raise ZeroDivisionError

    def watch(self, ended, in_flight: int, _is_ending: bool) -> str:
        assert 0 <= in_flight <= self.s.most
        unknown = sum(result.outcome == UNKNOWN for result in ended)
        return "too many in doubt" if 0 < self.s.max_unknown <= unknown else ""

    # The service and the token endpoint

    def send_once(self, _connection, request, _timeout) -> Answer:
        if request.url.endswith("/token"):
            return self.answer_with_token()
        key = json.loads(request.body).get("name") or request.url.rsplit("/", 1)[1]
        self.fail_in("thread, before")
        request.may_send()
        self.look_at_lease(key)
        self.sent += 1
        self.fail_in("thread, after")
        self.time.answer_after(self.chance.choice(self.s.takes))
        if request.headers["Authorization"] != f"Bearer token-{self.token}-of-the-tests":
            if not request.headers["Authorization"].startswith("Bearer token-"):
                self.problems.append("a request without a token")
            return Answer(401, {})
        return self.answer(key, self.fate())

    def fate(self) -> str:
        left = self.chance.random()
        for fate, part in self.s.fates.items():
            left -= part
            if left < 0:
                return fate
        return "made"

    def answer(self, key: str, fate: str) -> Answer:
        if fate == "refused":
            return Answer(403, {})
        if fate == "throttled":
            return Answer(429, {"Retry-After": f"{self.s.retry_after:g}"})
        if fate == "overloaded":
            return Answer(503, {})
        if fate == "unreachable":
            raise AttemptFailed("no route", sent=False)
        self.machines.setdefault(key, []).append(RUN)
        if fate == "lost":
            raise AttemptFailed("the connection was lost", sent=True)
        asset = {"id": f"id-{key}", "name": key, "attributes": {"login": True}}
        return Answer(201, {}, json.dumps(asset).encode())

    def answer_with_token(self) -> Answer:
        if self.chance.random() < self.s.token_fails:
            return Answer(503, {})
        number = self.token if self.s.revoked_at else 1
        token = {"access_token": f"token-{number}-of-the-tests", "expires_in": self.s.token_lives}
        return Answer(200, {}, json.dumps(token).encode())

    def revoke(self) -> None:
        self.token += 1 if self.s.revoked_at else 999

    # Other tasks

    def begin_elsewhere(self, key, seconds: float) -> None:
        intent = self.book.begin(key, 80)
        if intent:
            self.time.at(self.time.now + seconds, partial(self.end_elsewhere, key, intent))

    def end_elsewhere(self, key, intent) -> None:
        self.machines.setdefault(key.name, []).append("other")
        self.book.end(key, intent)

    # What holds

    def look_at_lease(self, key: str) -> None:
        """A request is on its way only under a lease that cannot end before it does."""
        if self.time.now > self.ended_at:
            self.problems.append(f"{key} was sent after the end")
        if not self.s.ledger or self.s.lost:
            return
        entries = {each.name: entry for each, entry in self.book.entries.items()}
        leases = {each.name: end for each, end in self.book.leases.items()}
        intent = entries.get(key)
        if not intent or intent.state != INTENT or intent.run != RUN:
            self.problems.append(f"{key} was sent without an intent")
        elif leases[key] < self.time.now + 20:
            self.problems.append(f"{key} was sent under a lease that may end before")

    def look_at(self, each, result) -> None:
        """At the end, each machine is known as what it is."""
        key, entry = each.key, self.book.entries.get(key_of(each))
        made, outcome = self.machines.get(key, []), result.outcome
        grave = outcome_of(NOT_SENT, *self.effects.get(key, []))
        wrong = {
            "was made twice": self.s.resource == CREATE and len(made) > 1,
            "was not accepted": outcome == ACCEPTED and RUN not in made,
            "was made": outcome in (NOT_SENT, REJECTED) and RUN in made,
            "has an attempt that is unknown": outcome in (NOT_SENT, REJECTED) and grave == UNKNOWN,
            "was begun": result.skipped and (RUN in made or (bool(entry) and entry.run == RUN)),
            "has no rival": not self.s.others and "another task began" in result.msg.text,
            **self.unrecorded(made, entry, result),
        }
        self.problems += [f"{key} {what}: {outcome}, {result.msg}" for what in wrong if wrong[what]]

    def unrecorded(self, made: list[str], entry, result) -> dict[str, bool]:
        """Return what the ledger lacks, or keeps, without a word about it."""
        said = ("could not be recorded", "lists it in doubt")
        if not self.s.ledger or any(text in str(result.msg) for text in said):
            return {}
        is_ours = bool(entry) and (entry.run == RUN or self.s.resource == UPDATE)
        is_open = is_ours and entry.state == INTENT and result.outcome != UNKNOWN
        return {"is left as an intent": is_open, "is not recorded": RUN in made and not is_ours}

    def look_at_end(self, done: task.Results) -> None:
        """It ends in time, with nothing in flight."""
        leaks = [loop.width.in_flight for loop in self.loops if not loop.reason]
        end, stop = self.ended_at, min(self.stopped_at, self.signal_at, self.ended_at)
        wrong = {
            "it tried a ledger that is away for too long": self.book.failed_at
            > self.loops[-1]._deadline,
            f"its reason to stop is {done.reason!r}": self.s.stops in (True, False)
            and bool(done.reason) != self.s.stops,
            f"{done.reason}": "unexpected" in done.reason and not self.raised,
            f"{leaks} keep their places": any(leaks),
            f"it took {end:.3f} s": end > self.s.seconds,
            f"it ended {end - stop:.1f} s after the reason to stop": end - stop
            > GRACE + 1 + 2 * max(self.book.blocks, self.book.commit),
        }
        self.problems += [what for what in wrong if wrong[what]]


class _Memory(Memory):
    """What the processes of a run share; another one may have the lock first."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._is_asked = False

    def try_lock(self, name: str) -> bool:
        until, fetches = self._world.s.token_lock
        if fetches and not self._is_asked:
            token = {"value": "token-1-of-the-tests", "use_until": NEVER}
            self._world.time.at(until, partial(self.write, name, token))
        self._is_asked = True
        return self._world.time.now >= until
