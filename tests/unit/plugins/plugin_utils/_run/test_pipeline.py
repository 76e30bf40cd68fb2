# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a task runs."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._run import pipeline

CONNECTIONS = ["local", "ssh", "community.docker.docker", "process", "LOCAL", ""]


@pytest.mark.parametrize(
    "conditions", [*product(CONNECTIONS, (0, 30), (False, True), (None, "the library"))], ids=str
)
def test_only_tasks_that_would_run_next_to_the_worker_run_inside_it(conditions, monkeypatch):
    connection, seconds, becomes, requests = conditions
    task, transport = SimpleNamespace(async_val=seconds), SimpleNamespace(transport=connection)
    monkeypatch.setattr(pipeline, "requests", requests)
    inside = pipeline.in_worker(SimpleNamespace(_task=task, _connection=transport, becomes=becomes))
    assert inside is (conditions == ("local", 0, False, "the library"))
