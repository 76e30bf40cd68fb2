# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A loop over one kept-alive connection, against a service that breaks it midway."""

from __future__ import annotations

import pytest
from support import CREATE, UPDATE
from support.service import Peer

from .behaviors import whole
from .case import Case
from .lab import assert_agreement, asset_is_whole, lab_of, run
from .test_calls import KeptTransports

ITEMS = 12


def _breaks_every_third(peer: Peer) -> bool:
    """Carry out each request, but reset the connection instead of every third answer."""
    request = peer.request()
    if request:
        envelope = peer.service.carry_out(request)
        if peer.service.turns % 3 == 0:
            return bool(peer.rst())
        peer.say(whole(envelope))
    return bool(request)


@pytest.mark.parametrize("tls", ["", "server"], ids=["http", "https"])
@pytest.mark.parametrize("resource", [CREATE, UPDATE], ids=["POST", "PUT"])
def test_a_connection_that_breaks_midway(resource, tls, tmp_path, authority):
    transports, outcomes = KeptTransports(), []
    case = Case(service=_breaks_every_third, tls=tls)
    with lab_of(case, resource, tmp_path, authority) as lab:
        for _item in range(ITEMS):
            lab.service.forget()
            result = run(lab, case, connect=transports.__getitem__)
            outcomes.append(result["outcome"])
            assert_agreement(lab, result)
            assert "failed" in result or asset_is_whole(lab, result)
        transports.close()
    if resource == CREATE:  # the broken request is reported, and the next one uses a new connection
        assert outcomes == ["accepted", "accepted", "unknown"] * (ITEMS // 3)
    else:
        assert outcomes == ["accepted"] * ITEMS
