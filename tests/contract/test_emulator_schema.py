# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The running emulator against the OpenAPI document, by requests that schemathesis makes of it, good and bad."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import schemathesis
from emulator.openapi import DOCUMENT
from emulator.server import start
from hypothesis import HealthCheck, assume, settings

BOUNDED = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
TOKEN = "known"
schema = schemathesis.openapi.from_path(DOCUMENT)


READINGS = [{"put": "merge", "unset": "null"}, {"put": "replace", "unset": "omit"}]


@pytest.fixture(scope="module", params=READINGS, ids=lambda reading: "-".join(reading.values()))
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """An emulator that asks for no more than the document does."""
    with start(required="lenient", unknown_id="create", token=TOKEN, **request.param) as running:
        yield running.url


def mistaken(case: schemathesis.Case) -> bool:
    """Whether the case is said to be good though it is not: schemathesis takes "" for a date-time that may be null."""
    attributes = case.body.get("attributes") if isinstance(case.body, dict) else None
    empty = isinstance(attributes, dict) and attributes.get("password_last_rotated_at") == ""
    return empty and case.meta.generation.mode is schemathesis.GenerationMode.POSITIVE


@schema.parametrize()
@BOUNDED
def test_the_emulator_keeps_to_the_document(case, url):
    assume(not mistaken(case))
    case.call_and_validate(base_url=url, headers={"Authorization": f"Bearer {TOKEN}"})
