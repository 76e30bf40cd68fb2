# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings of a task, and a request that is sent once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, NamedTuple

from .._errors import AttemptFailed
from .._http import Answer, Request, transport
from .._version import VERSION
from .policy import AttemptResult, Value, event_of

# Of every request.
HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "User-Agent": f"infrastructure.services/{VERSION}",
}


class Credentials(NamedTuple):
    """Everything that goes into a token request, and identifies the token."""

    auth_url: str
    client_id: str | None
    client_secret: str | None
    client_authentication: str
    scopes: list[str]
    parameters: dict[str, str]


@dataclass(frozen=True)
class Settings:
    """The shared options, checked."""

    base_url: str  # in its canonical form, as ledgers and reports record it
    access_token: str | None
    credentials: Credentials | None
    connection: transport.ConnectionSettings
    headers: dict[str, str]  # those that the user adds
    timeout: float  # seconds, one attempt
    retries: int
    retry_max_delay: float  # seconds


def send(
    connection: transport.ConnectionSettings,
    request: Request,
    timeout: float,
    read: Callable[[Answer], AttemptResult[Value]],
) -> AttemptResult[Value]:
    """Send a request once, within `timeout` seconds; raise an error of its `may_send`."""
    try:
        return read(transport.send_once(connection, request, timeout))
    except AttemptFailed as error:
        return AttemptResult(event_of(error), error.msg)
