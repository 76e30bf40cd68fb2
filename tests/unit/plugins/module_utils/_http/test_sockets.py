# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sockets: no operation outlives its attempt, and what is handed over is known before the kernel takes it."""

from __future__ import annotations

import socket
import time

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._http import sockets
from ansible_collections.infrastructure.services.plugins.module_utils._http.sockets import Meter, look_up


def metered(seconds: float) -> tuple[sockets._MeteredSocket, socket.socket, Meter]:
    """Return a metered socket, its other end, and its meter, in an attempt of so many seconds."""
    meter = Meter(connect_timeout=1)
    meter.start(seconds)
    ours, theirs = socket.socketpair()
    return sockets._MeteredSocket(ours, meter), theirs, meter


def test_a_meter_knows_how_much_time_is_left():
    meter = Meter(connect_timeout=1)
    meter.start(5)
    assert 4 < meter.left() <= 5
    meter.start(10 * sockets.LONGEST_WAIT)
    assert meter.left() == sockets.LONGEST_WAIT
    meter.start(0)
    with pytest.raises(socket.timeout):
        meter.left()


def test_a_new_attempt_knows_nothing_of_the_one_before():
    meter = Meter(connect_timeout=1)
    meter.phase, meter.peer, meter.sent, meter.ended = sockets.Phase.TLS, "x port 1", True, True
    meter.start(1)
    assert (meter.phase, meter.peer, meter.sent, meter.ended) == (sockets.Phase.REQUEST, "", False, False)


def test_what_is_handed_over_counts_before_the_kernel_takes_it():
    sock, theirs, meter = metered(5)
    theirs.close()
    with pytest.raises(OSError, match=r"."):
        sock.sendall(b"x")
    assert meter.sent is True
    sock.close()


def test_what_a_proxy_is_asked_does_not_count():
    sock, theirs, meter = metered(5)
    sockets._MeteredSocket(sock, meter, counting=False).sendall(b"CONNECT")
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


def test_a_reader_that_nobody_writes_to_ends_with_the_attempt():
    sock, theirs, meter = metered(0.05)
    started = time.monotonic()
    with sock.makefile("rb") as stream, pytest.raises(socket.timeout):
        stream.read(1)
    assert time.monotonic() - started < 1
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
def test_an_address_is_not_looked_up(address, monkeypatch):
    monkeypatch.setattr(sockets.threading, "Thread", None)  # a look-up of a name runs in one
    assert look_up(address, 80, 0)[0][4][:2] == (address, 80)


def test_a_name_is_looked_up():
    assert "127.0.0.1" in {address[4][0] for address in look_up("localhost", 80, 5)}


@pytest.mark.parametrize("name", ["a" * 64 + ".example", "é" * 64])
def test_a_name_that_cannot_exist_is_an_error_of_the_look_up(name):
    with pytest.raises(socket.gaierror):
        look_up(name, 80, 10)


def test_a_slow_look_up_ends_in_time(monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args: time.sleep(0.3))  # a name server that says nothing
    started = time.monotonic()
    with pytest.raises(socket.timeout):
        look_up("slow.example", 80, 0.05)
    assert time.monotonic() - started < 0.25
