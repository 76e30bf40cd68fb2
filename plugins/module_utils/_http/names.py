# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Looks up the addresses of a host name within a time limit."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout


def look_up(host: str, port: int, seconds: float) -> list[tuple]:
    """Return what socket.getaddrinfo does, within `seconds`; raise socket.gaierror or socket.timeout.

    The look-up of the C library has no timeout, so it runs in a thread, which is abandoned when it takes too long.
    """
    if host.replace(".", "").isdigit() or ":" in host:  # an address: nothing to look up
        return socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)
    found = Future()
    try:
        threading.Thread(target=_ask, args=(host, port, found), daemon=True).start()
    except RuntimeError:  # a limit on threads; better without a time limit than not at all
        _ask(host, port, found)
    try:
        return found.result(seconds)
    except FutureTimeout:
        raise socket.timeout("the name look-up took too long") from None


def _ask(host: str, port: int, future: Future) -> None:
    try:
        future.set_result(socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM))
    except UnicodeError:
        future.set_exception(socket.gaierror(socket.EAI_NONAME, "not a host name"))
    except OSError as error:
        future.set_exception(error)
