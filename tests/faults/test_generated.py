"""Whatever bytes arrive as an answer, to a task, a list or a token request: a result with a true
outcome and without a credential, in bounded memory and time, and no other error.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from support.service import Peer, Service

from .asking import MACHINES, WAYS, digest, way_of
from .behaviors import whole
from .generated import Generated, generate

TESTS = Path(__file__).resolve().parents[1]
MOST_MEMORY = 256 * 1024  # KiB of the whole process: a list keeps three of the largest answers
MOST_SECONDS = 30.0  # of the processor, for a task of two attempts
LONGEST_MESSAGE = 10_000  # characters
GRANT = whole(b'{"access_token": "granted-token", "expires_in": 60}', status="200 OK")
CREATED = whole(b'{"id": "vm-1", "name": "web01"}')


class Answering:
    """The script of a service that gives each task the generated answer of its number."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.asked: Counter[int] = (
            Counter()
        )  # by number: how many requests got the generated answer

    def __call__(self, peer: Peer) -> bool:
        request = peer.request()
        if not request:
            return False
        number = int(re.match("/?n([0-9]+)", request.path).group(1))
        self.asked[number] += 1
        answer = generate(self.seed, number)
        # Its end arrives with the end of the connection, on which nothing more is sent then.
        peer.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        peer.say(answer.data)
        for _time in range(answer.times):
            peer.say(answer.filler)
        peer.fin()
        return False


def answer_well(peer: Peer) -> bool:
    """Grant a token, or say that a machine was created."""
    request = peer.request()
    if request:
        peer.say(GRANT if request.path == "/token" else CREATED)
    return bool(request)


def true_outcomes(way: str, answer: Generated, failed: bool) -> set[str]:
    """Return the outcomes that are true after this answer; after random bytes, those of any status
    in them.
    """
    if way == "CONNECT":
        return {"not_sent"}
    if "token" in way:
        return {"not_sent" if failed else "accepted"}
    if answer.outcome:
        return {answer.outcome}
    said = {"unknown"}
    if re.search(rb"HTTP/[^\n]*2", answer.data):
        said.add("accepted")
    if re.search(rb"HTTP/[^\n]*[34]", answer.data):
        said.add("rejected")
    return said


def assert_true(answer: Generated, told: dict, asked: int) -> None:
    """Check what a task told of its request, or a list of each of its requests."""
    way = way_of(told["number"])
    assert not told["leaks"], told
    assert told["seconds"] < MOST_SECONDS, told
    requests = [each for each in told["items"] or [told] if not each["skipped"]]
    for each in requests:
        assert_true_of_one(way, answer, each)
    if way.startswith("list"):
        assert len(told["items"]) == len(MACHINES), told
        assert told["failed"] == any(each["failed"] or each["skipped"] for each in told["items"]), (
            told
        )
        assert told["changed"] == any(each["changed"] for each in told["items"]), told
    if way in ("POST", "list"):  # 429 is the only answer after which it is sent again
        assert asked == len(requests) or (b"429" in answer.data and asked > len(requests)), told


def assert_true_of_one(way: str, answer: Generated, told: dict) -> None:
    """Check what a task or an item told of its request."""
    failed, outcome = told["failed"], told["outcome"]
    assert outcome in true_outcomes(way, answer, failed), told
    assert told["changed"] == (outcome == "accepted"), told
    assert failed or outcome == "accepted", told
    assert len(told["msg"]) < LONGEST_MESSAGE, told
    assert told["msg"].isprintable(), told
    assert "in time" not in told["msg"], told
    assert "took too long" not in told["msg"], told
    if answer.asset:
        assert failed == (way == "CONNECT"), told
    if answer.asset and way in ("POST", "PUT", "list"):
        assert told["asset"] == digest(answer.asset), told


def run(seed: int, first: int, count: int) -> list[dict]:
    """Run the tasks in another process; return what it told of each, and of its memory."""
    script = Answering(seed)
    with Service(script) as service, Service(answer_well) as good:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "faults.asking",
                service.url,
                good.url,
                str(first),
                str(first + count),
            ],
            env={**os.environ, "PYTHONPATH": str(TESTS)},
            capture_output=True,
            text=True,
            check=False,
            timeout=1000,
        )
    assert done.returncode == 0, f"seed {seed}: {done.stderr[-2000:]}"
    *told, memory = map(json.loads, done.stdout.splitlines())
    assert [each["number"] for each in told] == list(range(first, first + count))
    for each in told:
        assert_true(generate(seed, each["number"]), each, script.asked[each["number"]])
    assert memory["peak"] < MOST_MEMORY
    return told


def test_generated_answers():
    told = run(36, 0, 600)
    for way in {*WAYS} - {"CONNECT"}:
        results = [each["failed"] for each in told if way_of(each["number"]) == way]
        assert min(results.count(True), results.count(False)) > 10


@pytest.mark.stress
@pytest.mark.parametrize("seed", range(4))
def test_many_generated_answers(seed):
    for first in range(0, 20_000, 2000):
        run(seed, first, 2000)
