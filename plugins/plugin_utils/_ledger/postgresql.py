# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger in PostgreSQL, for several controllers. Locks are advisory ones of the session and end with it."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import Iterator

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
except ImportError:  # said when a PostgreSQL ledger is opened
    psycopg = None

from ...module_utils._errors import MissingLibrary
from .store import Key, Ledger, LedgerError, first_line

# Seconds and counts after which a server that has gone away without a word is given up; the URL may say otherwise.
_PATIENCE = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",  # milliseconds
}
# Whatever the server's default is: an intent is on disk before the request, and a lost controller's locks end.
_SESSION = ("SET synchronous_commit = on", "SET tcp_keepalives_idle = 30", "SET tcp_keepalives_interval = 10")


class PostgresLedger(Ledger):
    """A session of its own, which a pooler in transaction mode does not give."""

    table_exists = "SELECT 1 WHERE to_regclass('infrastructure_services_entry') IS NOT NULL"

    def __init__(self, url: str, read_only: bool = False) -> None:
        """Open the ledger at a postgresql:// URL; raise LedgerError or MissingLibrary."""
        if psycopg is None:
            raise MissingLibrary(
                "ledger: the Python library psycopg (3) is needed on the controller for a postgresql:// ledger"
            )
        try:
            asked = conninfo_to_dict(url)
        except psycopg.Error:  # whose text quotes the URL
            raise LedgerError("ledger: it is not a valid postgresql:// URL") from None
        super().__init__(_where(asked))
        self.error = (psycopg.Error,)
        try:
            self._connection = psycopg.connect(**{**_PATIENCE, **asked}, autocommit=True)
        except psycopg.Error as error:
            raise LedgerError(f"ledger: {self.where} cannot be reached: {first_line(error)}") from None
        try:
            for statement in _SESSION:
                self._execute(statement)
            with self.alone(Key("", "", "").number()):
                self.prepare(read_only)
        except LedgerError:
            self.close()
            raise

    @property
    def closed(self) -> bool:
        return self._connection.closed

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def alone(self, number: int) -> Iterator[None]:
        self._execute("SELECT pg_advisory_lock(?)", (number,))
        try:
            yield
        finally:
            with suppress(LedgerError):  # with the session the lock is gone too
                self._execute("SELECT pg_advisory_unlock(?)", (number,))

    def run(self, statement: str, values: tuple) -> list[tuple]:
        cursor = self._connection.execute(statement.replace("?", "%s"), values)
        return cursor.fetchall() if cursor.description else []


def _where(asked: dict) -> str:
    """Return host, port and database of a ledger, without user and password."""
    port = f":{asked['port']}" if "port" in asked else ""
    return f"postgresql://{asked.get('host', '')}{port}/{asked.get('dbname', '')}"
