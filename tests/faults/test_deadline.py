"""`timeout` limits a whole attempt, whatever drips."""

from __future__ import annotations

import re

import pytest

from .drips import DRIPS, endure

TIMEOUT = 0.3  # seconds
LONGEST = 10.0  # seconds; half of what a drip takes by itself.
OVER = re.compile("in time|too long|timed out|cannot be resolved at the moment")


@pytest.mark.parametrize("case", DRIPS, ids=lambda case: case.name)
def test_a_drip_ends_at_the_deadline(case, tmp_path, authority):
    result, seconds = endure(case, tmp_path, authority, TIMEOUT)
    assert result["failed"]
    assert result["outcome"] == case.ends.post.outcome
    assert OVER.search(result["msg"])
    assert TIMEOUT <= seconds < LONGEST
