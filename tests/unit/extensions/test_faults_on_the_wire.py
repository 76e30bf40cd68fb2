"""What a client sees of each fault, and how the conversation and the store record it."""

from __future__ import annotations

import json
import time

import pytest

PATH = "/api/v1/services/compute/virtual_machines"
BODY = b'{"name": "web01", "attributes": {}}'
HEAD = (
    f"POST {PATH} HTTP/1.1\r\nhOst: HERE\r\nAuthorization: Bearer t\r\n"
    f"Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n"
).encode()
RAW = HEAD + b"\r\n" + BODY
LAST = HEAD + b"Connection: close\r\n\r\n" + BODY


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


@pytest.mark.parametrize("ending", ["drop", "reset"])
def test_an_answer_is_cut(emulator, ending):
    emulator.meet(kind="truncate", part="body", bytes=5, ending=ending)
    with emulator.connect() as client:
        client.sendall(emulator.addressed(LAST))
        received = b""
        while not received.endswith(b'\r\n\r\n{"id"'):
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
