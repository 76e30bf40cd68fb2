# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""URLs of PostgreSQL ledgers. No message quotes one: a part that looks like a host may be half a password."""

from __future__ import annotations

import re

from .entries import LedgerError

# What these parts contain when a password has an unescaped `/ @ # ?`. A host may be a directory, or a comma-separated
# list.
_WRONG = {"host": re.compile(r"[@#?%\s]"), "port": re.compile(r"[^\d,]"), "dbname": re.compile(r"[@#?%:/\s]")}


def parsed(url: str, psycopg) -> dict:
    """Return the URL as libpq parses it; raise LedgerError."""
    try:
        asked = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error:  # its text quotes the URL
        asked = {"host": "@"}
    if any(found.search(str(asked.get(part) or "")) for part, found in _WRONG.items()):
        raise LedgerError(
            "ledger: it is not a valid postgresql:// URL. Percent-encode special characters of the password"
            " (/ is %2F, @ is %40, # is %23, ? is %3F, % is %25)"
        )
    return asked


def described(asked: dict) -> str:
    """Return host, port and database of a ledger, without user and password."""
    port = f":{asked['port']}" if "port" in asked else ""
    return f"postgresql://{asked.get('host', '')}{port}/{asked.get('dbname', '')}"
