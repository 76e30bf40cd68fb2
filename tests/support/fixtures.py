"""The installed artifact, the emulator inside it, Ansible's commands, and a PostgreSQL server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from .emulating import Service, emulating
from .running import Ansible, build_and_install


@pytest.fixture(scope="session")
def collections(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collections path that holds the installed artifact."""
    given = os.environ.get("TEST_COLLECTIONS")
    return (
        Path(given).resolve() if given else build_and_install(tmp_path_factory.mktemp("artifact"))
    )


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a database that only this process uses."""
    from .databases import own_database  # noqa: PLC0415 - most tests have no psycopg

    base = tmp_path_factory.getbasetemp()
    with own_database(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) as url:
        yield url


@pytest.fixture(scope="session")
def installed(collections: Path) -> Path:
    """The root of the installed collection."""
    return collections / "ansible_collections/infrastructure/services"


@pytest.fixture(scope="session")
def running_service(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The emulator of the installed collection, in a process of its own."""
    with emulating(installed, tmp_path_factory.mktemp("emulator")) as service:
        yield service


@pytest.fixture
def service(running_service: Service) -> Service:
    """The emulator, reset to its initial state."""
    running_service.reset()
    return running_service


@pytest.fixture
def ansible(collections: Path, service: Service, tmp_path: Path) -> Ansible:
    """Ansible's commands, with a freshly reset service and a token in their environment."""
    return Ansible(tmp_path, collections, service.url, "local")
