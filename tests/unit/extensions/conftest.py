# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A running emulator for the tests that need its sockets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from emulator.server import Running, start


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    """One emulator for all tests of a file."""
    with start(roles=["role-1"]) as server:
        yield server


@pytest.fixture
def emulator(running: Running) -> Running:
    """The emulator as it is after its start."""
    running.api.reset()
    return running
