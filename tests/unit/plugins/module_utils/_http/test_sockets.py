# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sockets: no operation outlives its attempt, and bytes count as handed over before the kernel
takes them.
"""

from __future__ import annotations

import socket
import threading

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._http import sockets
from ansible_collections.infrastructure.services.plugins.module_utils._http.exchange import (
    MAX_ANSWER,
    TooLong,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http.sockets import (
    Meter,
    MeteredSocket,
    Phase,
    look_up,
)


def metered(seconds: float) -> tuple[MeteredSocket, socket.socket, Meter]:
    """Return a metered socket, its other end, and its meter, in an attempt of `seconds`."""
    meter = Meter(connect_timeout=1)
    meter.start(seconds)
    ours, theirs = socket.socketpair()
    return MeteredSocket(ours, meter), theirs, meter


def test_a_meter_knows_how_much_time_is_left():
    meter = Meter(connect_timeout=1)
    meter.start(5)
    assert 4 < meter.left() <= 5
    meter.start(0)
    with pytest.raises(socket.timeout):
        meter.left()


def test_a_new_attempt_starts_from_scratch():
    meter = Meter(connect_timeout=1)
    meter.phase, meter.peer, meter.sent, meter.ended = Phase.TLS, "x port 1", True, True
    meter.received, meter.head = 10, (200, None)
    meter.start(1)
    assert (meter.phase, meter.peer, meter.sent, meter.ended) == (Phase.REQUEST, "", False, False)
    assert (meter.received, meter.head) == (0, None)


def test_the_limit_counts_what_a_proxy_says_to_connect_and_what_the_service_says():
    sock, theirs, meter = metered(5)
    meter.received = MAX_ANSWER - 2
    theirs.sendall(b"abc")
    tunnel, stream = (
        MeteredSocket(sock._sock, meter, counting=False).makefile("rb"),
        sock.makefile("rb"),
    )
    assert tunnel.raw.read(1) == b"a"
    assert stream.raw.read(1) == b"b"
    with pytest.raises(TooLong):
        stream.raw.read(1)
    sock.close()
    theirs.close()


def test_bytes_count_before_the_kernel_takes_them():
    sock, theirs, meter = metered(5)
    theirs.close()
    with pytest.raises(OSError, match=r"."):
        sock.sendall(b"x")
    assert meter.sent is True
    sock.close()


def test_bytes_sent_to_a_proxy_do_not_count():
    sock, theirs, meter = metered(5)
    MeteredSocket(sock, meter, counting=False).sendall(b"CONNECT")
    assert theirs.recv(7) == b"CONNECT"
    sock.close()
    theirs.close()


def test_nothing_is_handed_over_when_the_time_is_up():
    sock, theirs, meter = metered(0)
    with pytest.raises(socket.timeout):
        sock.sendall(b"x")
    assert meter.sent is False
    sock.close()
    assert theirs.recv(1) == b""
    theirs.close()


def test_a_read_without_data_ends_with_the_attempt():
    sock, theirs, meter = metered(0.05)
    with sock.makefile("rb") as stream, pytest.raises(socket.timeout):
        stream.read(1)
    assert 0 < sock.gettimeout() <= 0.05
    assert meter.ended is False
    sock.close()
    theirs.close()


def test_an_end_of_stream_is_remembered():
    sock, theirs, meter = metered(5)
    theirs.sendall(b"ab")
    theirs.close()
    with sock.makefile("rb") as stream:
        assert stream.read(2) == b"ab"
        assert meter.ended is False
        assert stream.read(1) == b""
    assert meter.ended is True
    sock.close()


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_an_ip_address_is_not_looked_up(address, monkeypatch):
    monkeypatch.setattr(sockets.threading, "Thread", None)  # name look-ups run in one
    assert look_up(address, 80, 0)[0][4][:2] == (address, 80)


def test_a_name_is_looked_up():
    assert "127.0.0.1" in {address[4][0] for address in look_up("localhost", 80, 5)}


@pytest.mark.parametrize("name", ["a" * 64 + ".example", "é" * 64])
def test_an_impossible_name_is_a_look_up_error(name):
    with pytest.raises(socket.gaierror):
        look_up(name, 80, 10)


def test_a_name_is_looked_up_where_no_thread_can_be_started(monkeypatch):
    """A limit on threads must not fail the request."""

    def start(thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", start)
        assert "127.0.0.1" in {address[4][0] for address in look_up("localhost", 80, 5)}
        with pytest.raises(socket.gaierror):
            look_up("a" * 64 + ".example", 80, 5)
    assert "127.0.0.1" in {address[4][0] for address in look_up("localhost", 80, 5)}


def test_a_slow_look_up_ends_in_time(monkeypatch):
    answered = threading.Event()
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda *args: answered.wait(60)
    )  # a silent name server
    with pytest.raises(socket.timeout):
        look_up("slow.example", 80, 0.05)
    answered.set()
