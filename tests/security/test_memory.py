"""What an answer can cost: memory above idle, measured in a separate process for each answer."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest
from faults.behaviors import head
from support.service import Peer, Service

MOST = 64 * 1024  # KiB above idle, whatever the service says
PIECE = 65536
TESTS = Path(__file__).resolve().parents[1]

# After a task against a good answer, each fork runs one more task; idle is the fork with another
# good answer. VmHWM is the peak of one process, in KiB, and starts anew in a fork, whereas
# ru_maxrss would start at the parent's.
PROGRAM = """
import os
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from support import CREATE, run_task

def peak():
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])

def run(way, timeout):
    return run_task(CREATE, base_url=f"{sys.argv[2]}/{way.replace(' ', '%20')}", retries=0, timeout=timeout)

run("good", 60)
for argument in sys.argv[3:]:
    way, _comma, timeout = argument.partition(",")
    if not os.fork():
        is_usable = "asset" in run(way, float(timeout))
        print(f"{way},{is_usable},{peak()}", flush=True)
        os._exit(0)
    os.wait()
"""


def repeated(piece: bytes, size: int, before: bytes = b"", after: bytes = b"") -> bytes:
    """Return about `size` bytes of the repeated piece."""
    return before + piece * (size // len(piece)) + after


FULL = 4 * 1024 * 1024 - 300  # just below the limit for an answer and its headers
LIST = (b'{"a": [', b"0]}")
GOOD = {
    "good": b'{"id": "1"}',
    "one long text": repeated(b"x", FULL, b'{"a": "', b'"}'),
    "one long text with four bytes": repeated(b"x", FULL, '{"a": "\U0001f600'.encode(), b'"}'),
    "one long text with an escape": repeated(b"x", FULL, b'{"a": "\\ud83d\\uDE00', b'"}'),
    "as many objects as can be": repeated(b'{"":0},', 80_000 * 7, *LIST),
    "as many lists as can be": repeated(b"[],", 145_000 * 3, *LIST),
    "as many texts as can be": repeated(b'"%s",' % (b"x" * 30), FULL, *LIST),
}
REFUSED = {
    "empty lists": repeated(b"[],", FULL, *LIST),
    "small objects": repeated(b'{"":0},', FULL, *LIST),
    "numbers": repeated(b"1234,", FULL, *LIST),
    "nested as deep as can be": repeated(b"[" * 60 + b"]" * 60 + b",", FULL, *LIST),
}
BOMBS = {"zeros in gzip": 1, "zeros in gzip in two members": 2}  # members of 200 MiB in all
ENDLESS = {
    "endless body": (head(), b"x" * PIECE),
    "one endless chunk": (head("Transfer-Encoding: chunked") + b"fffffffff\r\n", b"x" * PIECE),
    "endless header": (b"HTTP/1.1 201 Created\r\nA: ", b"x" * PIECE),
    "endless interim answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
    "a bomb that was not asked for": (
        head("Content-Encoding: gzip", "Content-Length: 209715200"),
        b"\0" * PIECE,
    ),
}
UNTIL_TIMEOUT = "endless interim answers"


def service(peer: Peer) -> None:
    """Answer according to the path; endless means 200 MiB."""
    request = peer.request()
    way = request.path.split("/")[1].replace("%20", " ")
    if body := {**GOOD, **REFUSED}.get(way):
        peer.say(head(f"Content-Length: {len(body)}", "Connection: close") + body)
    elif way in BOMBS:
        bomb = BOMBS[way] * gzip.compress(bytes((200 << 20) // BOMBS[way]), 1)
        peer.say(head(f"Content-Length: {len(bomb)}", "Content-Encoding: gzip") + bomb)
    else:
        before, piece = ENDLESS[way]
        peer.say(before)
        for _piece in range(200 * 1024 * 1024 // len(piece)):
            peer.say(piece)


WAYS = [*list(GOOD)[1:], *REFUSED, *BOMBS, *ENDLESS]


@pytest.fixture(scope="module")
def costs() -> dict[str, tuple[str, int]]:
    """For each answer whether it was usable, and how many KiB above idle the process took."""
    ways = [f"{way},{1 if way == UNTIL_TIMEOUT else 60}" for way in ("good", *WAYS)]
    with Service(service) as running:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(TESTS), running.url, *ways],
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=300,
        )
    lines = [line.split(",") for line in done.stdout.splitlines()]
    peaks = {way: (is_usable, int(peak)) for way, is_usable, peak in lines}
    return {way: (is_usable, peak - peaks["good"][1]) for way, (is_usable, peak) in peaks.items()}


@pytest.mark.parametrize("way", WAYS)
def test_what_an_answer_costs(costs, way):
    is_usable, grown = costs[way]
    assert is_usable == str(way in GOOD)
    assert grown <= MOST
