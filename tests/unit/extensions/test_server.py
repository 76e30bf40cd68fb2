"""The emulator at its sockets: the exact conversation, invalid requests, what a client sees of each
fault, and shutdown.
"""

from __future__ import annotations

import json
import time
from datetime import datetime
from urllib.parse import urlsplit

import pytest
from emulator.server import start

PATH = "/api/v1/services/compute/virtual_machines"
BODY = b'{"name": "web01", "attributes": {}}'
HEAD = (
    f"POST {PATH} HTTP/1.1\r\nhOst: HERE\r\nAuthorization: Bearer t\r\n"
    f"Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n"
).encode()
RAW = HEAD + b"\r\n" + BODY
LAST = HEAD + b"Connection: close\r\n\r\n" + BODY


def test_the_answer_is_complete_and_the_conversation_exact(emulator):
    answer = emulator.converse(LAST)
    assert answer.startswith(b"HTTP/1.1 201 Created\r\n")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["name"] == "web01"
    (entry,) = emulator.conversation()
    assert entry["headers"][0] == ["hOst", urlsplit(emulator.url).netloc]
    assert abs(datetime.fromisoformat(entry["time"]).timestamp() - time.time()) < 60
    assert {
        key: entry[key]
        for key in ("method", "path", "body", "status", "applied", "operation", "fault")
    } == {
        "method": "POST",
        "path": PATH,
        "body": BODY.decode(),
        "status": 201,
        "applied": True,
        "operation": "create_virtual_machine",
        "fault": None,
    }


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),
        (HEAD + b"no colon\r\n\r\n", 400),
        (b"GET /" + b"x" * 65536 + b" HTTP/1.1\r\n", 431),
        (HEAD + b"Transfer-Encoding: gzip\r\n\r\n", 501),
        (HEAD + b"Content-Length: 1\r\n\r\n", 400),
        (b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400),
    ],
)
def test_an_invalid_request_ends_the_connection(emulator, raw, status):
    answer = emulator.converse(raw)
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert answer.endswith(b"Content-Length: 0\r\nConnection: close\r\n\r\n")
    assert emulator.conversation() == []


def test_a_chunked_body_is_reassembled(emulator):
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in BODY)
    head = LAST.partition(b"\r\n\r\n")[0].replace(
        b"Content-Length: 35", b"Transfer-Encoding: chunked"
    )
    assert emulator.converse(head + b"\r\n\r\n" + chunks + b"0\r\n\r\n").startswith(
        b"HTTP/1.1 201 "
    )
    assert [entry["body"] for entry in emulator.conversation()] == [BODY.decode()]


def test_with_a_prefix_nothing_is_served_outside_it(peer):
    with start(prefix="/a/b/") as running:
        emulator = peer(running)
        assert emulator.url.endswith("/a/b")
        assert emulator.converse(LAST).startswith(b"HTTP/1.1 404 ")
        assert emulator.converse(LAST.replace(b" /api", b" /a/b/api")).startswith(b"HTTP/1.1 201 ")
        assert [entry["path"] for entry in emulator.conversation()] == [PATH, f"/a/b{PATH}"]


def test_stopping_ends_all_connections_and_waits(peer):
    with start() as running:
        emulator = peer(running)
        emulator.meet(kind="delay", seconds=60)
        with emulator.connect() as waiting, emulator.connect() as idle:
            waiting.sendall(peer(running).addressed(RAW))
            emulator.wait_for_request()
            running.stop()
            assert (waiting.recv(1), idle.recv(1)) == (b"", b"")
        with pytest.raises(ConnectionRefusedError):
            emulator.connect()


@pytest.mark.parametrize(("when", "count"), [("before", 0), ("after", 1)])
@pytest.mark.parametrize("kind", ["drop", "reset", "status", "redirect", "garbage"])
def test_a_fault_strikes_before_or_after_the_store(emulator, kind, when, count):
    emulator.meet(
        kind=kind,
        when=when,
        **{"status": {"status": 503}, "redirect": {"location": "/x"}}.get(kind, {}),
    )
    if kind == "reset":
        with pytest.raises(ConnectionResetError):
            emulator.converse(LAST)
    else:
        answer = emulator.converse(LAST)
        expected = {
            "status": b"HTTP/1.1 503 ",
            "redirect": b"HTTP/1.1 307 ",
            "garbage": b"\x16\x03\x01",
        }
        assert answer.startswith(expected.get(kind, b""))
        assert bool(answer) == (kind in expected)
    (entry,) = emulator.conversation()
    status = {"status": 503, "redirect": 307}.get(kind)
    assert (entry["applied"], entry["status"], entry["fault"]) == (bool(count), status, kind)
    assert emulator.created() == count
    assert emulator.converse(LAST).startswith(b"HTTP/1.1 201 ")


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_delay_holds_back_the_answer(emulator, when):
    emulator.meet(kind="delay", when=when, seconds=0.5)
    with emulator.connect() as client:
        start_time = time.monotonic()
        client.sendall(emulator.addressed(LAST))
        entry = emulator.wait_for_request(processed=when == "after")
        assert (emulator.created(), entry["status"]) == (
            (0, None) if when == "before" else (1, 201)
        )
        assert emulator.drain(client).startswith(b"HTTP/1.1 201 ")
        assert time.monotonic() - start_time >= 0.5


@pytest.mark.parametrize(
    ("part", "count", "last"), [("headers", 8, b"HTTP/1.1"), ("body", 5, b'\r\n\r\n{"id"')]
)
@pytest.mark.parametrize("ending", ["drop", "reset"])
def test_an_answer_is_cut(emulator, part, count, last, ending):
    emulator.meet(kind="truncate", part=part, bytes=count, ending=ending)
    with emulator.connect() as client:
        client.sendall(emulator.addressed(LAST))
        received = b""
        while not received.endswith(last):
            received += client.recv(1)
        if ending == "drop":
            assert client.recv(1) == b""
        else:
            with pytest.raises(ConnectionResetError):
                client.recv(1)
    assert emulator.created() == 1


@pytest.mark.parametrize("part", ["headers", "body"])
def test_an_answer_drips(emulator, part):
    emulator.meet(kind="drip", part=part, seconds=0.001)
    with emulator.connect() as client:
        client.sendall(emulator.addressed(LAST))
        pieces = []
        while piece := client.recv(65536):
            pieces.append(piece)
    assert len(pieces) > 20
    assert json.loads(b"".join(pieces).partition(b"\r\n\r\n")[2])["name"] == "web01"
