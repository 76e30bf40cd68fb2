# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The emulator at its sockets: what a client sees of each fault, byte by byte, and what the conversation says of it."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
import time
from urllib.parse import urlsplit

import pytest
import requests
import trustme
from emulator.server import Running, start

PATH = "/api/v1/services/compute/virtual_machines"
BODY = b'{"name": "web01", "attributes": {}}'
HEAD = (
    f"POST {PATH} HTTP/1.1\r\nhOst: x\r\nAuthorization: Bearer t\r\n"
    f"Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n"
).encode()
RAW = HEAD + b"\r\n" + BODY
LAST = HEAD + b"Connection: close\r\n\r\n" + BODY


def connect(running: Running) -> socket.socket:
    url = urlsplit(running.url)
    return socket.create_connection((url.hostname, url.port), timeout=5)


def converse(running: Running, data: bytes) -> bytes:
    """Send the bytes on a new connection; return everything that comes back until its end."""
    with connect(running) as client:
        client.sendall(data)
        return drain(client)


def drain(client: socket.socket) -> bytes:
    """Return what comes until the end of the stream."""
    received = b""
    while chunk := client.recv(65536):
        received += chunk
    return received


def meet(running: Running, **fault: object) -> None:
    answer = requests.post(f"{running.url}/_emulator/faults", json=fault, timeout=5)
    assert answer.status_code == 200, answer.text


def conversation(running: Running) -> list[dict]:
    return requests.get(f"{running.url}/_emulator/requests", timeout=5).json()


def wait_for_request(running: Running) -> None:
    deadline = time.monotonic() + 5
    while not conversation(running):
        assert time.monotonic() < deadline, "no request arrived"
        time.sleep(0.01)


def created(running: Running) -> int:
    return requests.get(f"{running.url}/_emulator/health", timeout=5).json()["virtual_machines"]


def test_an_answer_is_whole_and_the_conversation_exact(emulator):
    answer = converse(emulator, LAST)
    assert answer.startswith(b"HTTP/1.1 201 Created\r\n")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["name"] == "web01"
    (entry,) = conversation(emulator)
    assert entry["headers"][0] == ["hOst", "x"]
    assert {key: entry[key] for key in ("method", "path", "body", "status", "applied", "operation", "fault")} == {
        "method": "POST", "path": PATH, "body": BODY.decode(), "status": 201, "applied": True,
        "operation": "create_virtual_machine", "fault": None,
    }


def test_the_target_is_recorded_as_it_was_sent(emulator):
    for target in (b"/api/v1/%2e?q=%20", b"http://other:80/x"):
        converse(emulator, b"PUT " + target + b" HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert [entry["path"] for entry in conversation(emulator)] == ["/api/v1/%2e?q=%20", "http://other:80/x"]


def test_a_body_that_is_no_text_is_recorded(emulator):
    raw = LAST.replace(BODY, b"\xff" * len(BODY))
    assert converse(emulator, raw).startswith(b"HTTP/1.1 400 ")
    (entry,) = conversation(emulator)
    assert (entry["body"], base64.b64decode(entry["body_base64"])) == (None, b"\xff" * len(BODY))


def test_a_connection_is_kept_and_has_its_number(emulator):
    with requests.Session() as session:
        for _time in range(3):
            session.put(f"{emulator.url}/x", timeout=5)
    requests.put(f"{emulator.url}/x", timeout=5)
    numbers = [entry["connection"] for entry in conversation(emulator)]
    assert len(set(numbers[:3])) == 1
    assert numbers[3] != numbers[0]


def test_an_answer_does_not_wait_for_more(emulator):
    with requests.Session() as session:
        session.put(f"{emulator.url}/x", timeout=5)
        sockets = [connection.request for connection in emulator._server.open]
        assert {one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for one in sockets} == {1}


def test_requests_sent_at_once_are_answered_in_turn(emulator):
    assert converse(emulator, RAW * 3 + LAST).count(b"HTTP/1.1 201 ") == created(emulator) == 4


def test_the_client_is_told_to_continue(emulator):
    with connect(emulator) as client:
        client.sendall(HEAD + b"Expect: 100-continue\r\nConnection: close\r\n\r\n")
        assert client.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(BODY)
        assert drain(client).startswith(b"HTTP/1.1 201 ")


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"nonsense\r\n\r\n", 400), (b"GET / HTTP/1.0\r\n\r\n", 505), (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nA : b\r\n\r\n", 400), (b"GET / HTTP/1.1\r\n: b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 201 + b"\r\n", 400), (b"GET /" + b"x" * 65536 + b" HTTP/1.1\r\n", 431),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", 411), (b"PUT / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (HEAD + b"Content-Length: 1\r\n\r\n", 400), (b"PUT / HTTP/1.1\r\nContent-Length: 999999999999\r\n\r\n", 413),
    ],
)
def test_what_is_no_request_ends_the_connection(emulator, raw, status):
    answer = converse(emulator, raw)
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert answer.endswith(b"Content-Length: 0\r\nConnection: close\r\n\r\n")
    assert conversation(emulator) == []


@pytest.mark.parametrize("size", [0, 10, len(HEAD), len(RAW) - 1])
def test_half_a_request_is_none(emulator, size):
    with connect(emulator) as client:
        client.sendall(RAW[:size])
        client.shutdown(socket.SHUT_WR)
        assert client.recv(1) == b""
    assert (conversation(emulator), created(emulator)) == ([], 0)


@pytest.mark.parametrize(("when", "count"), [("before", 0), ("after", 1)])
@pytest.mark.parametrize("kind", ["drop", "reset", "status", "redirect", "garbage"])
def test_a_fault_strikes_before_or_after_the_store(emulator, kind, when, count):
    meet(emulator, kind=kind, when=when, **{"status": {"status": 503}, "redirect": {"location": "/x"}}.get(kind, {}))
    if kind == "reset":
        with pytest.raises(ConnectionResetError):
            converse(emulator, LAST)
    else:
        answer = converse(emulator, LAST)
        expected = {"status": b"HTTP/1.1 503 ", "redirect": b"HTTP/1.1 307 ", "garbage": b"\x16\x03\x01"}
        assert answer.startswith(expected.get(kind, b""))
        assert bool(answer) == (kind in expected)
    (entry,) = conversation(emulator)
    status = {"status": 503, "redirect": 307}.get(kind)
    assert (entry["applied"], entry["status"], entry["fault"]) == (bool(count), status, kind)
    assert created(emulator) == count
    assert converse(emulator, LAST).startswith(b"HTTP/1.1 201 ")


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_delay_holds_the_answer_back(emulator, when):
    meet(emulator, kind="delay", when=when, seconds=0.2)
    with connect(emulator) as client:
        start_time = time.monotonic()
        client.sendall(LAST)
        wait_for_request(emulator)
        assert (created(emulator), conversation(emulator)[0]["status"]) == ((0, None) if when == "before" else (1, 201))
        assert drain(client).startswith(b"HTTP/1.1 201 ")
        assert time.monotonic() - start_time >= 0.2


@pytest.mark.parametrize("ending", ["drop", "reset"])
def test_an_answer_is_cut(emulator, ending):
    meet(emulator, kind="truncate", part="body", bytes=5, ending=ending)
    with connect(emulator) as client:
        client.sendall(LAST)
        received = b""
        while not received.endswith(b'\r\n\r\n{"id"'):
            received += client.recv(1)
        if ending == "drop":
            assert client.recv(1) == b""
        else:
            with pytest.raises(ConnectionResetError):
                client.recv(1)
    assert created(emulator) == 1


@pytest.mark.parametrize("part", ["headers", "body"])
def test_an_answer_drips(emulator, part):
    meet(emulator, kind="drip", part=part, seconds=0.001)
    with connect(emulator) as client:
        client.sendall(LAST)
        pieces = []
        while piece := client.recv(65536):
            pieces.append(piece)
    assert len(pieces) > 20
    assert json.loads(b"".join(pieces).partition(b"\r\n\r\n")[2])["name"] == "web01"


def test_a_kept_connection_is_closed_unannounced(emulator):
    meet(emulator, kind="close")
    with connect(emulator) as client:
        client.sendall(RAW)
        answer = drain(client)
    assert answer.startswith(b"HTTP/1.1 201 ")
    assert b"Connection" not in answer


def test_a_client_that_leaves_during_a_drip_does_no_harm(emulator, capfd):
    meet(emulator, kind="drip", seconds=0.001)
    with connect(emulator) as client:
        client.sendall(RAW)
        client.recv(1)
    assert converse(emulator, LAST).startswith(b"HTTP/1.1 201 ")
    assert capfd.readouterr().err == ""


def test_a_fault_of_one_operation_leaves_the_others_alone(emulator):
    meet(emulator, kind="status", status=500, operation="update_application_role")
    meet(emulator, kind="status", status=401, operation="token")
    assert converse(emulator, LAST).startswith(b"HTTP/1.1 201 ")
    grant = {"grant_type": "client_credentials", "client_id": "a", "client_secret": "b"}
    assert requests.post(f"{emulator.url}/oauth/token", data=grant, timeout=5).status_code == 401
    token = requests.post(f"{emulator.url}/oauth/token", data=grant, timeout=5).json()["access_token"]
    role = f"{emulator.url}/api/v1/services/cassandra/application_roles/role-1"
    headers = {"Authorization": f"Bearer {token}"}
    assert [requests.put(role, json={}, headers=headers, timeout=5).status_code for _time in range(2)] == [500, 200]


def test_many_clients_at_once_are_all_served(emulator):
    threads = [threading.Thread(target=converse, args=(emulator, RAW * 9 + LAST)) for _time in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert created(emulator) == len(conversation(emulator)) == 100
    assert [entry["number"] for entry in conversation(emulator)] == list(range(1, 101))


def test_below_a_prefix_nothing_else_is_there():
    with start(prefix="/a/b/") as running:
        assert running.url.endswith("/a/b")
        assert requests.get(f"{running.url}/_emulator/health", timeout=5).status_code == 200
        assert converse(running, LAST).startswith(b"HTTP/1.1 404 ")
        assert converse(running, LAST.replace(b" /api", b" /a/b/api")).startswith(b"HTTP/1.1 201 ")
        assert [entry["path"] for entry in conversation(running)] == [PATH, f"/a/b{PATH}"]


def test_https(tmp_path):
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    with start(ssl_context=context) as running, connect(running), connect(running) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")  # neither this client nor the silent one holds it up
        answer = requests.get(f"{running.url}/_emulator/health", verify=str(tmp_path / "ca.pem"), timeout=5)
        assert (answer.url[:8], answer.status_code) == ("https://", 200)


def test_stopping_ends_every_connection_and_every_wait():
    running = start()
    meet(running, kind="delay", seconds=60)
    with connect(running) as waiting, connect(running) as idle:
        waiting.sendall(RAW)
        wait_for_request(running)
        running.stop()
        assert (waiting.recv(1), idle.recv(1)) == (b"", b"")
    with pytest.raises(ConnectionRefusedError):
        connect(running)
