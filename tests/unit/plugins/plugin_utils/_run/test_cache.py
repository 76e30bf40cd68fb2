# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a worker reuses: separate limits, least recently used evicted first, nothing from another
process or thread.
"""

from __future__ import annotations

import multiprocessing
import threading

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._task.options import (
    ARGUMENT_SPEC,
    settings_from,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    validated,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import Key
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_ledger,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.tables import (
    SCHEMA_VERSION,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._run.cache import (
    Cache,
    cached_ledger,
    cached_transport,
)
from support.locks import hold

FORK = multiprocessing.get_context("fork")
KEY = Key("https://service.example", "compute_virtual_machine", "web01")


class Thing:
    closed = False

    def close(self) -> None:
        self.closed = True


def settings(**options):
    """Return what a task with these options needs to connect."""
    given = {"base_url": "https://service.example", "access_token": "t", **options}
    return settings_from(validated(ARGUMENT_SPEC, {}, given)[0]).connection


@pytest.fixture
def cache() -> Cache:
    return Cache()


def test_an_object_is_created_once(cache):
    assert cache.get("a", Thing) is cache.get("a", Thing)
    assert cache.get("a", Thing) is not cache.get("b", Thing)


def test_a_failed_creation_closes_nothing_and_is_retried(cache):
    def fail():
        raise OSError("no room")

    first = [cache.get(name, Thing) for name in "abc"]
    for dummy in range(2):
        with pytest.raises(OSError, match="no room"):
            cache.get("d", fail)
    assert not any(thing.closed for thing in first)


def test_a_dropped_object_is_closed_and_recreated(cache):
    thing = cache.get("a", Thing)
    cache.forget("a")
    cache.forget("a")
    assert thing.closed
    assert cache.get("a", Thing) is not thing


def test_objects_inherited_through_fork_are_neither_used_nor_closed(cache):
    mine, answers = [cache.get(name, Thing) for name in "abc"], FORK.Queue()

    def child() -> None:
        own = [cache.get(name, Thing) for name in "abcd"]
        answers.put(
            ([thing.closed for thing in own], [thing.closed for thing in mine], own[0] is mine[0])
        )

    process = FORK.Process(target=child)
    process.start()
    assert answers.get(timeout=20) == ([False] * 4, [False] * 3, False)
    process.join(5)


def test_each_thread_has_its_own_objects(cache):
    mine, theirs = cache.get("a", Thing), []
    thread = threading.Thread(
        target=lambda: theirs.extend(cache.get(name, Thing) for name in "abcd")
    )
    thread.start()
    thread.join()
    assert theirs[0] is not mine
    assert not any(thing.closed for thing in (mine, *theirs))


@pytest.mark.parametrize(
    "other",
    [
        {"access_token": "u"},
        {"http_agent": "agent/2"},
        {"base_url": "https://other.example"},
        {"retries": 0},
        {"retry_max_delay": 1},
        {"timeout": 7},
    ],
)
def test_options_that_the_transport_does_not_need_create_no_new_one(other):
    assert cached_transport(settings()) is cached_transport(settings(**other))


@pytest.mark.parametrize(
    "other",
    [
        {"connect_timeout": 7},
        {"validate_certs": False},
    ],
)
def test_options_that_the_transport_needs_create_a_new_one(other):
    assert cached_transport(settings()) is not cached_transport(settings(**other))


@pytest.mark.parametrize(
    "variable", ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"]
)
def test_an_environment_that_changes_between_items_creates_a_new_one(variable, monkeypatch):
    before = cached_transport(settings())
    monkeypatch.setenv(variable, "http://127.0.0.1:9")
    assert cached_transport(settings()) is not before
    assert (cached_transport(settings(use_proxy=False)) is before) is variable.endswith("PROXY")


def test_a_reader_sees_a_ledger_that_was_created_meanwhile(tmp_path):
    path = str(tmp_path / "ledger.db")
    assert cached_ledger(path, read_only=True).version == 0
    open_ledger(path).close()
    reader = cached_ledger(path, read_only=True)
    assert reader.version == SCHEMA_VERSION
    assert cached_ledger(path, read_only=True) is reader


def test_a_loop_over_many_transports_keeps_its_ledger_open(tmp_path):
    ledger = cached_ledger(str(tmp_path / "ledger.db"), read_only=False)
    with hold(ledger, KEY):
        for seconds in range(1, 31):
            cached_transport(settings(connect_timeout=float(seconds)))
        assert ledger.get(KEY) is None
    assert cached_ledger(str(tmp_path / "ledger.db"), read_only=False) is ledger
