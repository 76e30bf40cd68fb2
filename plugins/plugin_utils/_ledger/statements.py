# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The statements that read and write entries and history, the same on SQLite and on PostgreSQL."""

from __future__ import annotations

IS_KEY = "base_url = ? AND resource = ? AND name = ?"
COLUMNS = 'state, sent, asset, began_at, changed_at, "by", run, trace_id, revision'
KEYED = f"base_url, resource, name, {COLUMNS}"
GET = f"SELECT {COLUMNS} FROM infrastructure_services_entry WHERE {IS_KEY}"
GET_SOME = f"SELECT name, {COLUMNS} FROM infrastructure_services_entry WHERE base_url = ? AND resource = ? AND name IN "
INSERT = (
    f"INSERT INTO infrastructure_services_entry ({KEYED}) VALUES ({', '.join('?' * 12)})"
    " ON CONFLICT (base_url, resource, name) DO NOTHING"
)
UPDATE = (
    "UPDATE infrastructure_services_entry SET state = ?, sent = ?, asset = ?, began_at = ?, changed_at = ?,"
    f' "by" = ?, run = ?, trace_id = ?, revision = ? WHERE {IS_KEY} AND revision = ?'
)
DELETE = f"DELETE FROM infrastructure_services_entry WHERE {IS_KEY} AND revision = ?"
ENDED = 'from_state, to_state, at, "by", run, outcome, status, message, seconds, trace_id'
RECORD = (
    f"INSERT INTO infrastructure_services_history (base_url, resource, name, {ENDED}, revision)"
    f" VALUES ({', '.join('?' * 14)})"
)
IS_RECORDED = f"SELECT 1 FROM infrastructure_services_history WHERE {IS_KEY} AND revision = ?"
ASSETS = (
    "SELECT base_url, name, asset FROM infrastructure_services_entry"
    " WHERE resource = ? AND state = ? ORDER BY name, base_url"
)
SEEN = "SELECT 1 FROM infrastructure_services_entry WHERE base_url = ? LIMIT 1"
ELSEWHERE = (
    "SELECT base_url FROM infrastructure_services_entry WHERE base_url <> ? AND resource = ? AND name = ? ORDER BY 1"
)
