# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The token that all workers of a run share, with real processes."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import stat
import time

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._call.tokens import Credentials, Token
from ansible_collections.infrastructure.services.plugins.module_utils._errors import TokenError
from ansible_collections.infrastructure.services.plugins.plugin_utils._worker.kept import SharedToken

FORK = multiprocessing.get_context("fork")
CREDENTIALS = Credentials(auth_url="https://id.example/token", client_id="me", client_secret="s",
                          client_authentication="basic", scopes=(), parameters=(), http_agent="agent")
WORKERS = 12


class Endpoint:
    """A token endpoint that writes down each request in a file that all processes share."""

    def __init__(self, directory, answer=lambda: Token(f"t-{time.time_ns()}", time.time() + 60)) -> None:
        self.directory, self.log, self.answer = directory, directory / "requests", answer
        self.log.touch()

    def fetch(self) -> Token:
        with self.log.open("a") as file:
            file.write("x")
        time.sleep(0.05)  # long enough that the others come meanwhile
        return self.answer()

    @property
    def requests(self) -> int:
        return len(self.log.read_text())

    def shared(self, credentials: Credentials = CREDENTIALS) -> SharedToken:
        return SharedToken(credentials, self.fetch, str(self.directory))

    @property
    def file(self):
        (path,) = (path for path in self.directory.glob("infrastructure.services-*") if path.suffix != ".lock")
        return path


@pytest.fixture
def endpoint(tmp_path) -> Endpoint:
    return Endpoint(tmp_path)


def refuse() -> Token:
    raise TokenError("no access token")


def together(work, workers: int = WORKERS) -> list:
    """What each of the processes got from `work`, all begun at once."""
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
    got = [answers.get(timeout=20) for dummy in processes]
    for process in processes:
        process.join(5)
    return got


def test_workers_that_come_at_once_make_one_token_request(endpoint):
    tokens = together(lambda: endpoint.shared().token())
    assert (len(set(tokens)), endpoint.requests) == (1, 1)


def test_each_identity_has_a_token_of_its_own(endpoint):
    others = [CREDENTIALS._replace(**change) for change in (
        {"client_id": "you"}, {"client_secret": "t"}, {"scopes": ("read",)}, {"parameters": (("audience", "a"),)},
        {"auth_url": "https://id.example/other"}, {"client_authentication": "post"})]
    tokens = {endpoint.shared(credentials).token() for credentials in [CREDENTIALS, *others]}
    assert len(tokens) == endpoint.requests == 1 + len(others)


def test_one_of_those_whose_token_was_refused_fetches_a_new_one_for_all(endpoint):
    old, all_refused = endpoint.shared().token(), FORK.Barrier(WORKERS)

    def work() -> list[str]:
        shared = endpoint.shared()
        first = shared.token()
        shared.renew()
        all_refused.wait(20)
        return [first, shared.token()]

    first, second = map(set, zip(*together(work)))
    assert (first, len(second), old in second, endpoint.requests) == ({old}, 1, False, 2)


def test_a_token_near_its_end_is_not_used(tmp_path):
    endpoint = Endpoint(tmp_path, lambda: Token("short", time.time() - 1))
    assert [endpoint.shared().token(), endpoint.shared().token(), endpoint.requests] == ["short", "short", 2]


def refuse_slowly() -> Token:
    time.sleep(0.5)  # so that all the others wait
    return refuse()


def test_a_dead_endpoint_is_asked_once_by_those_who_wait_for_it(tmp_path):
    endpoint = Endpoint(tmp_path, refuse_slowly)
    assert set(together(lambda: endpoint.shared().token())) == {"no access token"}
    assert endpoint.requests < WORKERS / 2  # who came after the failure asks again


def test_a_failure_is_not_remembered_for_those_who_come_later(tmp_path):
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
        time.sleep(60)

    holder = FORK.Process(target=lambda: SharedToken(CREDENTIALS, hang, str(tmp_path)).token())
    holder.start()
    assert entered.wait(10)
    os.kill(holder.pid, signal.SIGKILL)
    holder.join(10)
    began = time.monotonic()
    tokens = together(lambda: endpoint.shared().token(), 4)
    assert (len(set(tokens)), endpoint.requests) == (1, 1)
    assert time.monotonic() - began < 10


def test_the_file_is_readable_for_its_owner_only_and_no_name_tells_a_secret(endpoint):
    before = os.umask(0)
    try:
        endpoint.shared().token()
    finally:
        os.umask(before)
    kept = [path for path in endpoint.directory.iterdir() if path != endpoint.log]
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o600}
    assert len(kept) == 2, "the token and its lock, nothing that was half written"
    assert "client_secret" not in json.dumps([path.read_text() for path in kept])


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[1]", b"null"])
def test_a_file_that_makes_no_sense_counts_as_none(endpoint, content):
    endpoint.shared().token()
    endpoint.file.write_bytes(content)
    assert endpoint.shared().token().startswith("t-")
    assert endpoint.requests == 2
