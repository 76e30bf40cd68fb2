# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A second answer after the expected one: the next request must not take it for its own."""

from __future__ import annotations

import pytest
from support import CREATE, UPDATE
from support.service import Peer

from .behaviors import END_OF_HEAD, chunked, whole
from .case import Case
from .lab import assert_agreement, asset_is_whole, lab_of, run
from .test_calls import KeptTransports

BUFFER = 8192  # bytes that http.client reads at a time
OTHER = whole(b'{"id": "of nothing", "name": null, "attributes": {}}')
# The total length of the first answer, so that the second one starts at the end of a buffer, or
# next to it.
LENGTHS = [BUFFER - 2, BUFFER - 1, BUFFER, BUFFER + 1, 2 * BUFFER - 1, 2 * BUFFER]


def _padded(envelope: bytes, length: int, framed) -> bytes:
    """Return a good answer of `length` bytes, padded by a header line."""
    bare = framed(envelope).replace(END_OF_HEAD, b"\r\nX: " + END_OF_HEAD, 1)
    return bare.replace(END_OF_HEAD, b"a" * (length - len(bare)) + END_OF_HEAD, 1)


@pytest.mark.parametrize("framed", [whole, chunked], ids=["length", "chunked"])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("tls", ["", "server"], ids=["http", "https"])
@pytest.mark.parametrize("resource", [CREATE, UPDATE], ids=["POST", "PUT"])
def test_an_unsolicited_answer(resource, tls, length, framed, tmp_path, authority):
    def says_more(peer: Peer) -> bool:
        request = peer.request()
        if request:
            peer.say_at_once(_padded(peer.service.carry_out(request), length, framed) + OTHER)
        return bool(request)

    transports = KeptTransports()
    with lab_of(Case(service=says_more, tls=tls), resource, tmp_path, authority) as lab:
        for _item in range(3):
            lab.service.forget()
            result = run(lab, Case(), connect=transports.__getitem__)
            assert_agreement(lab, result)
            assert result["outcome"] == "accepted"
            assert asset_is_whole(lab, result)
        transports.close()
