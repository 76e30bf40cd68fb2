# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a task runs, decided from all that there is to know of it."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._worker.action import Facts, runs_in_process

SWITCHES = list(itertools.product((False, True), repeat=4))


@pytest.mark.parametrize("switches", SWITCHES, ids=["".join("ny"[switch] for switch in row) for row in SWITCHES])
@pytest.mark.parametrize("connection", ["local", "ssh", "community.docker.docker", "process", "LOCAL", ""])
def test_only_a_plain_local_task_runs_in_process(connection, switches):
    is_async, becomes, has_environment, has_requests = switches
    safe = connection == "local" and switches == (False, False, False, True)
    assert runs_in_process(Facts(connection, is_async, becomes, has_environment, has_requests)) is safe
