# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Admission of requests: a page of somebody else in a browser on this machine can send none.

Such a page can name the emulator by a name of its own, whose address it changes to 127.0.0.1 (DNS
rebinding), or send what needs no permission of the emulator, such as a form.
"""

from __future__ import annotations

import ipaddress
import re

from .control import is_control
from .messages import JSON, Request, Response, json_response

_HOST = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]+)(?::([0-9]{1,5}))?")


def refusal(
    request: Request, address: tuple[str, int], name: str, default_port: int
) -> Response | None:
    """Return the answer to a request that is refused, None for one that is to be processed.

    :param address: where the connection of the request has arrived, as an address and a port.
    :param name: the address or name on which the emulator was told to listen.
    :param default_port: of a Host without a port.
    """
    if request.is_absolute:  # a client of a proxy sends it, and no page can make a browser do so
        return None
    host = request.header("host").lower()
    if not _is_ours(host, address, name.lower(), default_port):
        return _refused(
            421, f"the Host must be localhost:{address[1]} or {address[0]}:{address[1]}"
        )
    origin = request.header("origin").lower()
    if origin and origin.partition("://")[2] != host:
        return _refused(403, f"the Origin must be the emulator's own page, http://{host}")
    if is_control(request) and request.method not in ("GET", "HEAD") and request.media_type != JSON:
        return _refused(415, f"a {request.method} needs the header Content-Type: {JSON}")
    return None


def _is_ours(host: str, address: tuple[str, int], name: str, default_port: int) -> bool:
    match = _HOST.fullmatch(host)
    if not match or int(match[2] or default_port) != address[1]:
        return False
    given = match[1].strip("[]")
    return given in ("localhost", address[0], name) or _is_loopback(given)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _refused(status: int, message: str) -> Response:
    return json_response(status, {"message": message})
