# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a task runs."""

from __future__ import annotations

from itertools import product

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._run.pipeline import Conditions, runs_in_worker

CONNECTIONS = ["local", "ssh", "community.docker.docker", "process", "LOCAL", ""]
EVERY = [Conditions(*values) for values in product(CONNECTIONS, *[[False, True]] * 3)]


@pytest.mark.parametrize("conditions", EVERY)
def test_only_tasks_that_would_run_next_to_the_worker_run_inside_it(conditions):
    inside = Conditions("local", is_async=False, becomes=False, has_requests=True)
    assert runs_in_worker(conditions) is (conditions == inside)
