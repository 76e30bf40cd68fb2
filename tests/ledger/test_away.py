# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A PostgreSQL server that goes down: before a task, between two tasks, while the service is
working.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._http.transport import (
    Transport,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import store
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    DONE,
    INTENT,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._run.ledgers import (
    ledger_of_process,
)
from emulator import faults
from ledger.tasks import key, task
from support.databases import Server, private_server


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    with private_server() as server:
        yield server


@pytest.fixture
def server(running) -> Server:
    """The server, running."""
    running.start()
    return running


@pytest.mark.parametrize("mode", ["run", "check"])
def test_a_server_that_is_down_is_noticed_before_the_request(server, service, mode):
    server.kill()
    result = task(server.url, base_url=service.url, name=mode, check_mode=mode == "check")
    assert (result["failed"], result["changed"], result["outcome"]) == (True, False, "not_sent")
    assert result["msg"].startswith("ledger: postgresql://")
    assert "cannot be reached" in result["msg"]
    assert service.api.conversation == []


def test_a_server_that_goes_down_between_two_items_is_noticed_before_the_request(
    server, opened, service
):
    """The item fails and nothing is sent; the next one opens a new connection."""
    options = {"base_url": service.url, "name": "between"}
    ledger = ledger_of_process(server.url, read_only=False, required_by="")
    ledger.get(key(service))
    server.kill()
    failed = task(ledger, **options)
    assert (failed["failed"], failed["changed"], failed["outcome"]) == (True, False, "not_sent")
    assert failed["msg"].startswith("ledger: postgresql://")
    assert service.api.conversation == []
    server.start()
    assert (
        task(ledger_of_process(server.url, read_only=False, required_by=""), **options)["outcome"]
        == "accepted"
    )
    ledger_of_process(server.url, read_only=False, required_by="").close()


@pytest.mark.parametrize("ending", ["success", "refusal", "drop"])
def test_a_server_that_goes_down_while_the_service_works_loses_nothing(
    server, opened, service, monkeypatch, ending
):
    faulty = {
        "refusal": {"kind": "status", "status": 403},
        "drop": {"kind": "drop", "when": "after"},
    }
    if ending in faulty:
        service.api.add_fault(faults.parse(faulty[ending]))
    real = Transport.send_once

    def send_once(*arguments, **options):
        try:
            return real(*arguments, **options)
        finally:
            server.kill()

    options = {"base_url": service.url, "name": ending, "retries": 0}
    with monkeypatch.context() as patch:
        patch.setattr(Transport, "send_once", send_once)
        patch.setattr(store, "_LOSS_GRACE", 0.1)
        failed = task(server.url, **options)
    outcome = {"success": "accepted", "refusal": "rejected", "drop": "unknown"}[ending]
    assert (failed["failed"], failed["changed"], failed["outcome"]) == (
        True,
        ending == "success",
        outcome,
    )
    assert (
        f"outcome is {outcome}, but it could not be recorded: ledger: postgresql://"
        in failed["msg"]
    )
    server.start()
    assert opened(server.url).get(key(service, ending)).state == INTENT
    assert (task(server.url, **options)["outcome"], len(service.api.conversation)) == ("unknown", 1)
    if ending == "success":
        (machine,) = service.api.store.snapshot()["virtual_machines"]
        assert failed["asset"]["id"] == machine["id"]


def test_committed_data_survives_a_crash_of_the_server(server, opened, service):
    options = {"base_url": service.url, "name": "durable"}
    assert task(server.url, **options)["outcome"] == "accepted"
    server.kill()
    server.start()
    assert opened(server.url).get(key(service, "durable")).state == DONE
    assert task(server.url, **options)["outcome"] == "not_sent"
