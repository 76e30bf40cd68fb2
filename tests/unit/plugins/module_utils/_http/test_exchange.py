# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the headers of an answer delimit its body; test_transport.py has whole answers."""

from __future__ import annotations

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._http.exchange import (
    MAX_ANSWER,
    body_framing,
)


@pytest.mark.parametrize(
    ("headers", "problem", "length"),
    [
        ({}, "", None),
        ({"Content-Length": "2"}, "", 2),
        ({"Content-Length": "2, 02 , 2"}, "it has two Content-Lengths", None),
        ({"Content-Length": "2, 2"}, "", 2),
        ({"Content-Length": "2, 3"}, "it has two Content-Lengths", None),
        ({"Content-Length": "two"}, "its Content-Length is not a number", None),
        ({"Content-Length": str(MAX_ANSWER)}, "", MAX_ANSWER),
        ({"Content-Length": str(MAX_ANSWER + 1)}, f"it is longer than {MAX_ANSWER} bytes", None),
        ({"Transfer-Encoding": " Chunked"}, "", None),
        ({"Transfer-Encoding": "gzip"}, "its Transfer-Encoding is unknown", None),
    ],
)
def test_the_length_of_a_body_is_known_or_it_is_said_why_not(headers, problem, length):
    assert body_framing(headers) == (problem, length)
