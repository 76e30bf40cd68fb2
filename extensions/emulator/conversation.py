# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The conversation: every request as it arrived, and what happened to it."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import datetime, timezone

from .messages import Request


@dataclass
class Entry:
    """One request. `status` is None until there is an answer, and stays None without one.

    `seconds` is the time of its arrival since the epoch.
    """

    number: int
    seconds: float
    connection: int
    operation: str | None
    request: Request
    status: int | None = None
    applied: bool = False
    fault: str | None = None

    def as_dict(self) -> dict[str, object]:
        """Return the entry as JSON has it: `body` is text, or None with `body_base64`."""
        try:
            body: dict[str, object] = {"body": self.request.body.decode("utf-8")}
        except UnicodeDecodeError:
            encoded = base64.b64encode(self.request.body).decode("ascii")
            body = {"body": None, "body_base64": encoded}
        arrived = datetime.fromtimestamp(self.seconds, tz=timezone.utc)
        return {
            "number": self.number,
            "time": arrived.isoformat(timespec="milliseconds"),
            "connection": self.connection,
            "operation": self.operation,
            "method": self.request.method,
            "path": self.request.target,
            "headers": [list(pair) for pair in self.request.headers],
            **body,
            "status": self.status,
            "applied": self.applied,
            "fault": self.fault,
        }
