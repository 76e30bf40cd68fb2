# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How http.client reads an answer, where it accepts too much or gives up too early."""

from __future__ import annotations

import http.client
from typing import NamedTuple


class Head(NamedTuple):
    """The status and the headers of an answer."""

    status: int
    headers: http.client.HTTPMessage


class FinalResponse(http.client.HTTPResponse):
    """The final answer: interim ones are skipped (RFC 9110 section 15.2); http.client skips only
    100.

    The undocumented name of http.client that it uses: `_read_next_chunk_size` reads the size of a
    chunk.
    """

    def begin(self) -> None:
        meter = self.fp.raw.meter
        super().begin()
        while self.status in (102, 103):
            self.headers = None  # begin() does nothing once they are set
            super().begin()
        meter.head = Head(self.status, self.headers)
        if self.length == 0:
            self.chunked = (
                False  # a 204 or 304 has no body, whatever its headers say (RFC 9112 section 6.3)
            )
            self.read(0)  # ends the answer; otherwise its connection would not be kept alive

    def _read_next_chunk_size(self) -> int:
        """Return the size; raise ValueError, which http.client turns into IncompleteRead.

        http.client accepts a minus sign: -1 would read to the end of the connection, and others
        raise errors.
        """
        size = super()._read_next_chunk_size()
        if size < 0:
            raise ValueError("a chunk has a negative size")
        return size
