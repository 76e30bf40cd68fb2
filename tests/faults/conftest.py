# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all tests of faults share."""

from __future__ import annotations

import pytest

from .lab import Authority


def pytest_configure(config):
    config.addinivalue_line("markers", "stress: takes longer than a contributor wants to wait; run by make stress")


@pytest.fixture(scope="session")
def authority(tmp_path_factory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))
