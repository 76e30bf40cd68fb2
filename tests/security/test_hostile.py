# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever a service answers, a task ends in time, with a result or an error of our own that is
truthful.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    ACCEPTED,
    NOT_SENT,
    REJECTED,
    UNKNOWN,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http.transport import (
    Transport,
)
from hypothesis import HealthCheck, given, settings
from support import CREATE, UPDATE, run_task
from support.service import PATIENCE

from .hostile import Said, Server, answers

TIMEOUT = 0.3  # seconds
UNHURRIED = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server for all answers."""
    with Server() as running:
        yield running


def check(server: Server, said: Said, resource: str, transports: list[Transport]) -> str:
    """Run a task against the answer, over a connection that may have been used before; return its
    outcome.
    """

    def kept(made_for) -> Transport:
        transports[:] = transports or [Transport(made_for)]
        return transports[0]

    server.answer, before = said, len(server.received)
    began = time.monotonic()
    result = run_task(resource, base_url=server.url, connect=kept, timeout=TIMEOUT, retries=0)
    assert time.monotonic() - began < PATIENCE / 2, "past its deadline, even for a busy machine"
    assert (
        result["msg"].isprintable() if result.get("failed") else isinstance(result["asset"], dict)
    )
    assert result["request_attempts"] == 1
    if result["outcome"] == NOT_SENT:  # the machine was too busy to connect in time
        assert len(server.received) == before
    elif result["outcome"] != UNKNOWN:
        wanted = rb"HTTP/\S+\s+2\d\d" if result["outcome"] == ACCEPTED else rb"HTTP/\S+\s+[34]\d\d"
        assert re.search(wanted, said.data), "no such status was there"
    assert result["changed"] == (result["outcome"] == ACCEPTED)
    return result["outcome"]


def hammer(server: Server, resource: str, examples: int, **how: object) -> None:
    """Check the given number of answers over one transport."""
    transports: list[Transport] = []
    seen: dict[bytes, str] = {}

    @settings(UNHURRIED, max_examples=examples, **how)
    @given(answers())
    def each(said: Said) -> None:
        seen[said.data] = check(server, said, resource, transports)

    each()
    transports[0].close()
    assert len(seen) > examples / 2
    assert {REJECTED, UNKNOWN, ACCEPTED} <= set(seen.values())
    assert list(seen.values()).count(NOT_SENT) < examples / 4


@pytest.mark.parametrize("resource", [CREATE, UPDATE])
def test_a_hostile_answer(server, resource, caplog):
    hammer(server, resource, 80, derandomize=True)
    assert not caplog.records, "a log record would be on standard error, with what the service said"


@pytest.mark.stress
@pytest.mark.parametrize("resource", [CREATE, UPDATE])
def test_many_hostile_answers(server, resource):
    hammer(server, resource, 5000)
