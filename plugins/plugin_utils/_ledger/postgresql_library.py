# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The library and the URL of a ledger in PostgreSQL.

psycopg is imported only where such a URL is used.
"""

from __future__ import annotations

import logging
import re
from types import ModuleType
from typing import Dict

from ...module_utils._errors import MissingLibrary
from ...module_utils._secrets import is_credential_name
from .entries import LedgerError

POSTGRESQL = ("postgresql://", "postgres://")
Parameters = Dict[str, str]
# What these parts of a URL contain when a password has an unescaped `/ @ # ?`. A host may be a
# directory, or a comma-separated list.
_WRONG = {
    "host": re.compile(r"[@#?%\s]"),
    "port": re.compile(r"[^\d,]"),
    "dbname": re.compile(r"[@#?%:/\s]"),
}
_SCHEMA = re.compile(r"-c ?search_path=(\S+)")  # in libpq's options


def psycopg_library() -> ModuleType:
    """Return the library; raise MissingLibrary."""
    try:
        import psycopg  # noqa: PLC0415 (others should not pay for the import)
    except ImportError:
        raise MissingLibrary(
            "ledger: the Python library psycopg (3) is needed on the controller for a"
            " postgresql:// ledger: pip install 'psycopg[binary]'"
        ) from None
    # Its warnings, from whichever thread, would wait for stderr, whose lock Ansible's main thread
    # may hold for ever.
    logging.getLogger("psycopg").setLevel(logging.CRITICAL + 1)
    return psycopg


def parsed_url(url: str) -> Parameters:
    """Return the URL as libpq parses it; raise LedgerError, which quotes no password."""
    psycopg = psycopg_library()
    try:
        parsed = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        parsed = {"host": "@"}
    asked = {name: str(value) for name, value in parsed.items() if value is not None}
    if any(wrong.search(asked.get(part, "")) for part, wrong in _WRONG.items()):
        raise LedgerError(
            "ledger: it is not a valid postgresql:// URL. Percent-encode special characters of the"
            " password (/ is %2F, @ is %40, # is %23, ? is %3F, % is %25), and give only parameters"
            " of libpq after a ?"
        )
    return asked


def described(asked: Parameters) -> str:
    """Return host, port, database and schema of a ledger, without user and password."""
    port = f":{asked['port']}" if "port" in asked else ""
    database = f"postgresql://{asked.get('host', '')}{port}/{asked.get('dbname', '')}"
    schema = _SCHEMA.search(asked.get("options") or "")
    return f"{database}, schema {schema[1]}" if schema else database


def has_password(asked: Parameters) -> bool:
    """Return whether a URL contains anything that must not be shown."""
    return any(value and is_credential_name(name) for name, value in asked.items())
