"""Fixtures shared by all fault tests."""

from __future__ import annotations

import pytest

from .lab import Authority


@pytest.fixture(scope="session")
def authority(tmp_path_factory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))
