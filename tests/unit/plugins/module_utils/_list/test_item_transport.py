# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A list opens only as many connections as there are file descriptors for."""

from __future__ import annotations

import os
import resource

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._list.item_transport import (
    most_connections,
)


@pytest.mark.parametrize(
    ("left", "connections"),
    [
        (1_000, 50),
        (62, 50),
        # Twelve are left for the ledger and a name look-up.
        (61, 49),
        (13, 1),
        (5, 1),
        (0, 1),
    ],
)
def test_a_list_leaves_some_descriptors_for_others(monkeypatch, left, connections):
    limit = len(os.listdir("/dev/fd")) + left
    monkeypatch.setattr(resource, "getrlimit", lambda _kind: (limit, limit))
    assert most_connections(50) == connections


def test_without_a_limit_a_list_has_all_connections_that_it_wants(monkeypatch):
    unlimited = resource.RLIM_INFINITY
    monkeypatch.setattr(resource, "getrlimit", lambda _kind: (unlimited, unlimited))
    assert most_connections(50) == 50
