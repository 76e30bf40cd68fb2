# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service that takes its time, within limits: delay, rate, capacity and queue."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
import requests
from emulator.load import Load
from emulator.messages import RefusalError
from emulator.settings import DEFAULT

MACHINES = "/api/v1/services/compute/virtual_machines"
HEADERS = {"Authorization": "Bearer t"}


def create(emulator) -> requests.Response:
    """Request a virtual machine."""
    body = {"name": "web01", "attributes": {}}
    return requests.post(emulator.url + MACHINES, json=body, headers=HEADERS, timeout=30)


def create_at_once(emulator, number: int) -> tuple[Counter, float]:
    """Request `number` machines at once; return how often each status was returned, and the total seconds."""
    began = time.monotonic()
    with ThreadPoolExecutor(number) as pool:
        answers = list(pool.map(lambda _number: create(emulator).status_code, range(number)))
    return Counter(answers), time.monotonic() - began


@pytest.fixture
def configure(emulator):
    def change(**settings: object) -> None:
        emulator.running.api.settings = emulator.running.api.settings.changed(settings)

    return change


def test_an_operation_takes_its_time(emulator, configure):
    configure(delay={"create_virtual_machine": 1, "any": 0.1})
    assert 1 <= create(emulator).elapsed.total_seconds() < 3
    token = requests.post(f"{emulator.url}/oauth/token", timeout=5)
    assert 0.1 <= token.elapsed.total_seconds() < 1


def test_more_than_a_hundred_at_once_take_the_time_of_one(emulator, configure):
    configure(delay={"any": 1})
    statuses, seconds = create_at_once(emulator, 120)
    assert statuses == {201: 120}
    assert 1 <= seconds < 10


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


def test_requests_above_the_rate_are_refused_without_delay(emulator, configure):
    configure(rate=3, delay={"any": 0.2})
    statuses, _seconds = create_at_once(emulator, 8)
    assert statuses == {201: 3, 429: 5}
    assert emulator.created() == 3


def test_above_its_capacity_it_is_slow(emulator, configure):
    configure(capacity=4, delay={"any": 0.2})
    statuses, seconds = create_at_once(emulator, 16)
    assert statuses == {201: 16}
    assert 0.8 <= seconds < 3


def test_above_its_queue_it_refuses(emulator, configure):
    configure(capacity=2, queue=3, retry_after=7, delay={"any": 1})
    statuses, _seconds = create_at_once(emulator, 9)
    assert statuses == {201: 5, 503: 4}
    configure(capacity=1, queue=0)
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda _number: create(emulator), range(2)))
    assert {answer.status_code: answer.headers.get("Retry-After") for answer in answers} == {201: None, 503: "7"}


def test_the_token_endpoint_is_not_limited(emulator, configure):
    configure(rate=1)
    assert create(emulator).status_code == 201
    grant = {"grant_type": "client_credentials", "client_id": "a", "client_secret": "b"}
    assert requests.post(f"{emulator.url}/oauth/token", data=grant, timeout=5).status_code == 200
    assert create(emulator).status_code == 429


def test_a_slot_is_freed_when_the_client_leaves(emulator, configure):
    configure(capacity=1, queue=0, delay={"any": 0.3})
    with pytest.raises(requests.ReadTimeout):
        requests.post(emulator.url + MACHINES, json={}, headers=HEADERS, timeout=0.1)
    assert create(emulator).status_code == 503
    time.sleep(0.4)
    assert create(emulator).status_code == 201
