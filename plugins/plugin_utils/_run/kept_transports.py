# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Transports that outlive a task; not in `kept`, so that a task that sends nothing need not import requests."""

from __future__ import annotations

from ...module_utils._http.transport import Transport
from ...module_utils._http.values import ConnectionSettings
from .kept import Kept

_transports = Kept()


def kept_transport(settings: ConnectionSettings) -> Transport:
    """Return the transport of this thread for the settings; raise MissingLibrary or InvalidInput."""
    return _transports.get(settings, lambda: Transport(settings))
