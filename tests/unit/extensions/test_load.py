"""A service that takes its time, within limits: delay, rate, capacity and queue."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from itertools import islice

import pytest
import requests
from emulator.load import Load
from emulator.messages import RefusalError
from emulator.settings import DEFAULT

MACHINES = "/api/v1/services/compute/virtual_machines"
HEADERS = {"Authorization": "Bearer t"}
PATIENCE = 60  # seconds


def create(emulator) -> requests.Response:
    """Request a virtual machine."""
    body = {"name": "web01", "attributes": {}}
    return requests.post(emulator.url + MACHINES, json=body, headers=HEADERS, timeout=PATIENCE)


@contextmanager
def created_at_once(emulator, number: int) -> Iterator[list[Future]]:
    """Request `number` machines at once."""
    with ThreadPoolExecutor(number) as pool:
        yield [pool.submit(create, emulator) for _number in range(number)]


def statuses(answers: list[Future]) -> Counter:
    """Return how often each status was returned."""
    return Counter(answer.result().status_code for answer in answers)


@pytest.fixture
def configure(emulator):
    def change(**settings: object) -> None:
        emulator.running.api.settings = emulator.running.api.settings.changed(settings)

    return change


@pytest.fixture
def hold(emulator, monkeypatch):
    """Return a function that has each request in progress call another function instead of waiting
    for its delay.
    """
    api = emulator.running.api
    original = api.answer

    def hold(instead: Callable[[], object]) -> None:
        monkeypatch.setattr(
            api, "answer", lambda *request: original(*request[:-1], lambda _seconds: instead())
        )

    return hold


def test_a_rate_holds_for_any_interval_of_a_second():
    now = [0.0]
    load, settings = Load(lambda: now[0]), DEFAULT.changed({"rate": 2, "retry_after": 1})
    begun = []
    for step in range(40):
        now[0] = step / 8
        with suppress(RefusalError), load.turn(settings):
            begun.append(now[0])
    assert begun == [0, 0.125, 1, 1.125, 2, 2.125, 3, 3.125, 4, 4.125]
    with pytest.raises(RefusalError) as refused, load.turn(settings):
        pass
    assert (refused.value.status, refused.value.headers) == (429, (("Retry-After", "1"),))


def test_above_its_queue_it_refuses(emulator, configure, hold):
    configure(capacity=2, queue=3, retry_after=7)
    refused = threading.Event()
    hold(lambda: refused.wait(PATIENCE))
    with created_at_once(emulator, 9) as answers:
        first = list(islice(as_completed(answers, PATIENCE), 4))
        refused.set()
        assert {
            (answer.result().status_code, answer.result().headers["Retry-After"])
            for answer in first
        } == {(503, "7")}
        assert statuses(answers) == {201: 5, 503: 4}
