"""The token that all workers of a run share, tested with real processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from types import SimpleNamespace

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._call.policy import (
    AttemptResult,
    Event,
)
from ansible_collections.infrastructure.services.plugins.module_utils._call.sending import (
    Credentials,
)
from ansible_collections.infrastructure.services.plugins.module_utils._call.tokens import (
    Token,
    Tokens,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._run.workers import (
    RunMemory,
)

FORK = multiprocessing.get_context("fork")
CREDENTIALS = Credentials(
    auth_url="https://id.example/token",
    client_id="me",
    client_secret="s",
    client_authentication="basic",
    scopes=[],
    parameters={},
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

    def tokens(self, credentials: Credentials = CREDENTIALS) -> Tokens:
        settings = SimpleNamespace(
            access_token=None, credentials=credentials, retries=0, retry_max_delay=0
        )
        return Tokens(settings, self.run, str)

    def token(self, credentials: Credentials = CREDENTIALS, fetch=None) -> str:
        """Return the token of a task, as its loop gets it."""
        tokens, started = self.tokens(credentials), []
        while not (tokens.is_ready(time.monotonic(), lambda: started.append(1)) or tokens.error):
            if started:
                answer = AttemptResult(Event.SUCCESS, value=(fetch or self.fetch)())
                tokens.take(answer, time.monotonic())
            time.sleep(0.01)
        return tokens.value or tokens.error

    def discard(self, token: str) -> None:
        self.tokens().discard(token)


@pytest.fixture
def endpoint(tmp_path) -> Endpoint:
    return Endpoint(tmp_path)


def together(work, workers: int = WORKERS) -> list:
    """The results of `work` in each of the processes, all started at once."""
    gate, answers = FORK.Event(), FORK.Queue()

    def run() -> None:
        gate.wait()
        answers.put(work())

    processes = [FORK.Process(target=run) for dummy in range(workers)]
    for process in processes:
        process.start()
    gate.set()
    got = [answers.get(timeout=60) for dummy in processes]
    for process in processes:
        process.join(60)
    return got


def test_concurrent_workers_make_one_token_request(endpoint):
    tokens = together(endpoint.token)
    assert (len(set(tokens)), endpoint.requests) == (1, 1)


def test_each_identity_has_a_token_of_its_own(endpoint):
    others = [
        CREDENTIALS._replace(**change)
        for change in (
            {"client_id": "you"},
            {"client_secret": "t"},
            {"scopes": ["read"]},
            {"parameters": {"audience": "a"}},
            {"auth_url": "https://id.example/other"},
            {"client_authentication": "post"},
        )
    ]
    tokens = {endpoint.token(credentials) for credentials in [CREDENTIALS, *others]}
    assert len(tokens) == endpoint.requests == 1 + len(others)


def test_one_of_the_workers_with_a_refused_token_fetches_a_new_one_for_all(endpoint):
    old, all_have_it, all_refused = (
        endpoint.token(),
        FORK.Barrier(WORKERS),
        FORK.Barrier(WORKERS),
    )

    def work() -> list[str]:
        first = endpoint.token()
        all_have_it.wait(60)
        endpoint.discard(first)
        all_refused.wait(60)
        return [first, endpoint.token()]

    first, second = map(set, zip(*together(work)))
    assert (first, len(second), old in second, endpoint.requests) == ({old}, 1, False, 2)


def test_a_worker_that_dies_with_the_lock_does_not_block_the_rest(tmp_path):
    endpoint, entered = Endpoint(tmp_path), FORK.Event()

    def hang() -> Token:
        entered.set()
        time.sleep(600)

    holder = FORK.Process(target=lambda: endpoint.token(fetch=hang))
    holder.start()
    assert entered.wait(60)
    os.kill(holder.pid, signal.SIGKILL)
    holder.join(10)
    tokens = together(endpoint.token, 4)
    assert (len(set(tokens)), endpoint.requests) == (1, 1)


def test_a_late_refusal_leaves_the_new_token_of_another_worker(endpoint):
    old = endpoint.token()
    endpoint.discard(old)
    new = endpoint.token()
    endpoint.discard(old)
    assert (endpoint.token(), endpoint.requests) == (new, 2)
