# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One attempt at one request: transport, sockets, URLs and JSON."""

from __future__ import annotations

from typing import Callable, Mapping, NamedTuple

# Bytes to receive in one attempt: status line, headers, interim answers, chunk sizes, trailers,
# body, and the answer of a proxy to CONNECT. Also the limit of a decompressed body.
MAX_ANSWER = 4 * 1024 * 1024
REQUIRES_CREDENTIALS = "requires credentials; put them in the proxy's URL, or set use_proxy: false"


class Request(NamedTuple):
    """A request as it is sent, except for the headers that follow from its URL and body."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes
    # Called right before the first byte is handed to the kernel; raises ServicesError if the
    # request may not be sent any more.
    may_send: Callable[[], None] = lambda: None


class Answer(NamedTuple):
    """An answer whose header block is complete."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    problem: str = ""  # why the body cannot be relied on; '' if it can
    # Whether it was cut off, or may have been, since only the end of the connection delimits it.
    cut: bool = False
