"""`timeout` limits a whole attempt, whatever drips; in a forked process too, as Ansible's workers
are.
"""

from __future__ import annotations

import json
import os
import re
import warnings

import pytest

from .drips import DRIPS, endure

TIMEOUT = 0.3  # seconds
LONGEST = 10.0  # seconds; half of what a drip takes by itself.
OVER = re.compile("in time|too long|timed out|cannot be resolved at the moment")


def in_a_fork(task):
    """Run the task in a forked child and return what it returns."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # Ansible, too, forks while threads are running
        child = os.fork()
    if not child:
        try:
            result, seconds = task()
            result = {key: result.get(key) for key in ("outcome", "failed", "msg")}
            os.write(write, json.dumps([result, seconds]).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return json.loads(told)


@pytest.mark.parametrize("call", [lambda task: task(), in_a_fork], ids=["here", "fork"])
@pytest.mark.parametrize("case", DRIPS, ids=lambda case: case.name)
def test_a_drip_ends_at_the_deadline(case, call, tmp_path, authority):
    result, seconds = endure(case, tmp_path, authority, TIMEOUT, call)
    assert result["failed"]
    assert result["outcome"] == case.ends.post.outcome
    assert OVER.search(result["msg"])
    assert TIMEOUT <= seconds < LONGEST
