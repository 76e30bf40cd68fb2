# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a call needs to know of the task's options."""

from __future__ import annotations

from dataclasses import dataclass

from .._http.settings import ConnectionSettings
from .headers import Trace
from .tokens import Credentials


@dataclass(frozen=True)
class Settings:
    """The shared options, checked; hashable, so that they can be the key of a cache."""

    base_url: str
    access_token: str | None
    credentials: Credentials | None
    connection: ConnectionSettings
    http_agent: str
    headers: tuple[tuple[str, str], ...]  # of requests to the service, in addition to those that the collection sets
    trace: Trace | None  # from the environment
    timeout: float  # seconds, one attempt
    retries: int
    retry_max_delay: float  # seconds
