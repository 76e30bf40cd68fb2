# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the next items of a loop reuse, and nothing from another process."""

from __future__ import annotations

import multiprocessing

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
from ansible_collections.infrastructure.services.plugins.plugin_utils._run.ledgers import (
    ledger_of_process,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._run.send_one import (
    reused_transport,
)
from support.locks import hold

FORK = multiprocessing.get_context("fork")
KEY = Key("https://service.example", "compute_virtual_machine", "web01")


def settings(**options):
    """Return what a task with these options needs to connect."""
    given = {"base_url": "https://service.example", "access_token": "t", **options}
    return settings_from(validated(ARGUMENT_SPEC, {}, given)[0]).connection


def test_a_connection_inherited_through_fork_is_not_used():
    mine, answers = reused_transport(settings()), FORK.Queue()
    process = FORK.Process(target=lambda: answers.put(reused_transport(settings()) is mine))
    process.start()
    assert answers.get(timeout=20) is False
    process.join(5)


def test_a_ledger_inherited_through_fork_is_not_used(tmp_path):
    path, answers = str(tmp_path / "ledger.db"), FORK.Queue()
    mine = ledger_of_process(path, read_only=False, required_by="")
    process = FORK.Process(
        target=lambda: answers.put(ledger_of_process(path, read_only=False, required_by="") is mine)
    )
    process.start()
    assert answers.get(timeout=20) is False
    process.join(5)


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
    assert reused_transport(settings()) is reused_transport(settings(**other))


@pytest.mark.parametrize(
    "other",
    [
        {"connect_timeout": 7},
        {"validate_certs": False},
    ],
)
def test_options_that_the_transport_needs_create_a_new_one(other):
    assert reused_transport(settings()) is not reused_transport(settings(**other))


@pytest.mark.parametrize(
    "variable", ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"]
)
def test_an_environment_that_changes_between_items_creates_a_new_one(variable, monkeypatch):
    before = reused_transport(settings())
    monkeypatch.setenv(variable, "http://127.0.0.1:9")
    assert reused_transport(settings()) is not before
    assert (reused_transport(settings(use_proxy=False)) is before) is variable.endswith("PROXY")


def test_a_reader_sees_a_ledger_that_was_created_meanwhile(tmp_path):
    path = str(tmp_path / "ledger.db")
    assert ledger_of_process(path, read_only=True, required_by="").version == 0
    open_ledger(path).close()
    reader = ledger_of_process(path, read_only=True, required_by="")
    assert reader.version == SCHEMA_VERSION
    assert ledger_of_process(path, read_only=True, required_by="") is reader


def test_a_loop_over_many_transports_keeps_its_ledger_open(tmp_path):
    ledger = ledger_of_process(str(tmp_path / "ledger.db"), read_only=False, required_by="")
    with hold(ledger, KEY):
        for seconds in range(1, 31):
            reused_transport(settings(connect_timeout=float(seconds)))
        assert ledger.get(KEY) is None
    assert ledger_of_process(str(tmp_path / "ledger.db"), read_only=False, required_by="") is ledger
