# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The token that all workers of a run share, tested with real processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import threading
import time

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._call.tokens import (
    Credentials,
    FetchedToken,
    Token,
)
from ansible_collections.infrastructure.services.plugins.module_utils._errors import TokenError
from ansible_collections.infrastructure.services.plugins.plugin_utils._run.run_memory import (
    RunMemory,
    TokenMemory,
)

FORK = multiprocessing.get_context("fork")
CREDENTIALS = Credentials(
    auth_url="https://id.example/token",
    client_id="me",
    client_secret="s",
    client_authentication="basic",
    scopes=(),
    parameters=(),
    http_agent="agent",
)
WORKERS = 12


class Endpoint:
    """A token endpoint that records each request in a file shared by all processes."""

    def __init__(
        self, directory, answer=lambda: Token(f"t-{time.time_ns()}", time.time() + 60), seconds=0.05
    ) -> None:
        """`seconds`: how long a request takes, so that others arrive meanwhile."""
        self.run, self.log, self.answer, self.seconds = (
            RunMemory(),
            directory / "requests",
            answer,
            seconds,
        )
        self.log.touch()

    def fetch(self) -> Token:
        with self.log.open("a") as file:
            file.write("x")
        time.sleep(self.seconds)
        return self.answer()

    @property
    def requests(self) -> int:
        return len(self.log.read_text())

    def shared(self, credentials: Credentials = CREDENTIALS, fetch=None) -> FetchedToken:
        return FetchedToken(credentials, fetch or self.fetch, TokenMemory(self.run, credentials))


@pytest.fixture
def endpoint(tmp_path) -> Endpoint:
    return Endpoint(tmp_path)


def refuse() -> Token:
    raise TokenError("no access token")


def together(work, workers: int = WORKERS) -> list:
    """The results of `work` in each of the processes, all started at once."""
    gate, answers = FORK.Event(), FORK.Queue()

    def run() -> None:
        gate.wait()
        try:
            answers.put(work())
        except TokenError as error:
            answers.put(error.msg)

    processes = [FORK.Process(target=run) for dummy in range(workers)]
    for process in processes:
        process.start()
    gate.set()
    got = [answers.get(timeout=60) for dummy in processes]
    for process in processes:
        process.join(60)
    return got


def test_concurrent_workers_make_one_token_request(endpoint):
    tokens = together(lambda: endpoint.shared().token())
    assert (len(set(tokens)), endpoint.requests) == (1, 1)


def test_each_identity_has_a_token_of_its_own(endpoint):
    others = [
        CREDENTIALS._replace(**change)
        for change in (
            {"client_id": "you"},
            {"client_secret": "t"},
            {"scopes": ("read",)},
            {"parameters": (("audience", "a"),)},
            {"auth_url": "https://id.example/other"},
            {"client_authentication": "post"},
        )
    ]
    tokens = {endpoint.shared(credentials).token() for credentials in [CREDENTIALS, *others]}
    assert len(tokens) == endpoint.requests == 1 + len(others)


def test_one_of_the_workers_with_a_refused_token_fetches_a_new_one_for_all(endpoint):
    old, all_have_it, all_refused = (
        endpoint.shared().token(),
        FORK.Barrier(WORKERS),
        FORK.Barrier(WORKERS),
    )

    def work() -> list[str]:
        shared = endpoint.shared()
        first = shared.token()
        all_have_it.wait(60)
        shared.discard(first)
        all_refused.wait(60)
        return [first, shared.token()]

    first, second = map(set, zip(*together(work)))
    assert (first, len(second), old in second, endpoint.requests) == ({old}, 1, False, 2)


def test_a_token_about_to_expire_is_not_used(tmp_path):
    endpoint = Endpoint(tmp_path, lambda: Token("short", time.time() - 1))
    assert [endpoint.shared().token(), endpoint.shared().token(), endpoint.requests] == [
        "short",
        "short",
        2,
    ]


def test_a_dead_endpoint_gets_one_request_from_all_who_wait(tmp_path, monkeypatch):
    arrived, original = FORK.Semaphore(0), TokenMemory.read

    def read(memory):
        arrived.release()  # by each worker, and once more by the one that asks the endpoint
        return original(memory)

    def refuse_when_all_wait() -> Token:
        for dummy in range(WORKERS + 1):
            assert arrived.acquire(timeout=60)
        return refuse()

    monkeypatch.setattr(TokenMemory, "read", read)
    endpoint = Endpoint(tmp_path, refuse_when_all_wait)
    assert together(lambda: endpoint.shared().token()) == ["no access token"] * WORKERS
    assert endpoint.requests == 1


def test_a_failure_is_not_cached_for_later_workers(tmp_path):
    endpoint = Endpoint(tmp_path, refuse)
    for dummy in range(2):
        with pytest.raises(TokenError):
            endpoint.shared().token()
    endpoint.answer = lambda: Token("good", time.time() + 60)
    assert (endpoint.shared().token(), endpoint.requests) == ("good", 3)


def test_a_worker_that_dies_with_the_lock_does_not_block_the_rest(tmp_path):
    endpoint, entered = Endpoint(tmp_path), FORK.Event()

    def hang() -> Token:
        entered.set()
        time.sleep(600)

    holder = FORK.Process(target=lambda: endpoint.shared(fetch=hang).token())
    holder.start()
    assert entered.wait(60)
    os.kill(holder.pid, signal.SIGKILL)
    holder.join(10)
    tokens = together(lambda: endpoint.shared().token(), 4)
    assert (len(set(tokens)), endpoint.requests) == (1, 1)


class OneAlive:
    """A provider that keeps one valid token per client, and a service that checks with it, shared
    by all processes.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint, self.alive = endpoint, endpoint.log.with_name("alive")
        endpoint.answer = self.grant

    def grant(self) -> Token:
        token = Token(f"t-{time.time_ns()}", time.time() + 60)
        self.alive.write_text(token.value)
        return token

    def use(self) -> bool:
        """Whether one host's request is accepted, with at most one new token."""
        shared = self.endpoint.shared()
        for dummy in range(2):
            token = shared.token()
            time.sleep(
                int(token[-4:]) / 1e6 + os.getpid() % 7 / 100
            )  # in flight for as long as others need to renew
            if token == self.alive.read_text():
                return True
            shared.discard(token)
        return False


@pytest.mark.parametrize("hosts", [20, pytest.param(50, marks=pytest.mark.stress)])
def test_a_revoked_token_costs_one_more_token_request_whatever_the_number_of_hosts(endpoint, hosts):
    provider = OneAlive(endpoint)
    assert endpoint.shared().token() == provider.alive.read_text()
    provider.alive.write_text("revoked")
    assert together(provider.use, hosts) == [True] * hosts
    assert endpoint.requests == 2


def test_a_late_refusal_leaves_the_new_token_of_another_worker(endpoint):
    late, early = endpoint.shared(), endpoint.shared()
    old = late.token()
    early.discard(early.token())
    new = early.token()
    late.discard(old)
    assert (late.token(), endpoint.requests) == (new, 2)


def test_threads_whose_token_was_refused_fetch_one_new_token(endpoint):
    shared, gate, got = endpoint.shared(), threading.Barrier(50), []
    old = shared.token()

    def work() -> None:
        gate.wait(60)
        shared.discard(old)
        got.append(shared.token())

    threads = [threading.Thread(target=work) for dummy in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (len(got), len(set(got)), old in got, endpoint.requests) == (50, 1, False, 2)


def test_identities_do_not_wait_for_each_other_s_endpoints(endpoint):
    entered, other = FORK.Event(), CREDENTIALS._replace(client_id="you")

    def hang() -> Token:
        entered.set()
        time.sleep(600)

    holder = FORK.Process(target=lambda: endpoint.shared(fetch=hang).token())
    holder.start()
    assert entered.wait(60)
    assert together(lambda: endpoint.shared(other).token(), 1)[0].startswith("t-")
    holder.kill()
    holder.join(10)


class Stopped(Exception):
    """Raised by a guard when this worker, and no other, must send nothing more."""


def test_what_stops_one_worker_does_not_stop_the_others(endpoint):
    def stop() -> Token:
        raise Stopped

    with pytest.raises(Stopped):
        endpoint.shared(fetch=stop).token()
    assert endpoint.shared().token().startswith("t-")


def test_a_worker_killed_while_writing_leaves_nothing(endpoint):
    class Cut(Exception):
        pass

    class Killed(bytearray):
        def __setitem__(self, at, value) -> None:
            if at.start:
                raise Cut
            super().__setitem__(at, value)

    endpoint.shared().token()
    endpoint.run._bytes = Killed(endpoint.run._bytes)
    with pytest.raises(Cut):
        endpoint.run.write("half", "written")
    endpoint.run._bytes = bytearray(endpoint.run._bytes)
    assert endpoint.run.read("half") is None
    assert (endpoint.shared().token()[:2], endpoint.requests) == ("t-", 2)


def test_there_is_always_room_for_the_latest_identity(tmp_path):
    endpoint = Endpoint(tmp_path, lambda: Token("t" * 100_000, time.time() + 60), seconds=0)
    everybody = [CREDENTIALS._replace(client_id=str(number)) for number in range(15)]
    for credentials in everybody:
        endpoint.shared(credentials).token()
    assert endpoint.requests == 15
    endpoint.shared(everybody[-1]).token()
    assert endpoint.requests == 15
    endpoint.shared(everybody[0]).token()
    assert endpoint.requests == 16


def test_a_token_too_long_to_share_is_still_used(tmp_path):
    endpoint = Endpoint(tmp_path, lambda: Token("t" * 2_000_000, time.time() + 60))
    assert [len(endpoint.shared().token()) for dummy in range(2)] == [2_000_000] * 2


def test_nothing_is_written_to_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    endpoint = Endpoint(tmp_path)
    endpoint.shared().token()
    assert list((tmp_path / "temporary").iterdir()) == []
    assert os.fstat(endpoint.run._file).st_size == 0


def test_a_directory_that_disappears_later_costs_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    endpoint = Endpoint(tmp_path)
    (tmp_path / "temporary").rmdir()
    assert len(set(together(lambda: endpoint.shared().token()))) == endpoint.requests == 1


def test_one_of_all_workers_is_the_first_to_ask(endpoint):
    first = together(lambda: endpoint.run.is_first("a new ledger"))
    assert sorted(first) == [False] * (WORKERS - 1) + [True]
    assert endpoint.run.is_first("another one")
    assert not endpoint.run.is_first("another one")
