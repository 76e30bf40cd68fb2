# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Connections that keep to a deadline and record whether anything of a request was sent.

requests bounds each read, not the whole request, and its exceptions do not tell whether the request
was sent. Both are known only at the socket. So before every operation a socket asks its `Attempt`
how much time is left, and marks the request as sent before it hands the first byte to the kernel.
An error is explained where it occurs, before a library wraps it. No message contains the text of a
library's exception, because it may quote a secret.

These are all undocumented names of urllib3 that we use: `_new_conn` opens the socket, so each
address can be bounded; `_dns_host` is the host to look up; `_tunnel` asks a proxy for a tunnel,
which is not part of the request.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Iterator

try:
    from urllib3.connection import HTTPConnection, HTTPSConnection
except ImportError:
    # A transport reports it; until then these are only bases of classes.
    globals().update(HTTPConnection=object, HTTPSConnection=object)

from .._errors import AttemptFailed, ServicesError
from . import MAX_ANSWER, REQUIRES_CREDENTIALS, Request

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer


TOO_LONG = f"it is longer than {MAX_ANSWER} bytes"
# The peer ended TLS without saying why.
TLS_ENDED = (ssl.SSLEOFError, ssl.SSLZeroReturnError)


class Unusable(Exception):
    """An answer cannot be used: why not. No library catches this, so it arrives as it was raised."""


class Attempt:
    """The deadline of an attempt, and what its sockets saw."""

    def __init__(self, request: Request, timeout: float, connect_timeout: float) -> None:
        """`timeout`, `connect_timeout`: seconds from now on."""
        now = time.monotonic()
        self._deadline = now + timeout
        self._connect_deadline = now + min(timeout, connect_timeout)
        self._may_send = request.may_send
        self.proxy = ""  # for messages, until there is a tunnel through it
        # Explains an error of the step in which the connection is.
        self.explain: Callable[[Exception], AttemptFailed] = _no_connection
        self.is_connected = False  # from then on, bytes are those of the request
        self.sent = False  # a byte of the request was handed to the kernel
        self.head: http.client.HTTPResponse | None = None  # once its headers are complete
        self.ended = False  # the peer closed its side
        self.error: OSError | None = None  # the last one of the socket
        self._received = 0  # bytes, including a proxy's answer to CONNECT

    def left(self, connecting: bool = False) -> float:
        """Return the seconds that are left; raise socket.timeout if there are none."""
        deadline = self._connect_deadline if connecting else self._deadline
        left = deadline - time.monotonic()
        if left <= 0:
            raise socket.timeout("the time for this attempt is over")
        return left

    def begin(self) -> None:
        """Mark the request as sent; raise ServicesError if it may not be sent any more."""
        if self.is_connected and not self.sent:
            self._may_send()
            self.sent = True

    def count(self, received: int) -> None:
        """Count bytes that arrived, 0 at the end; raise Unusable for more than MAX_ANSWER."""
        self.ended |= received == 0
        self._received += received
        if self._received > MAX_ANSWER:
            raise Unusable(TOO_LONG)


class TimedSocket(socket.socket):
    """A socket each of whose operations may take the time that is left of its attempt."""

    attempt: Attempt

    def sendall(self, data: ReadableBuffer, *flags: int) -> None:
        view = memoryview(data).cast("B")
        while view:
            view = view[self.send(view, *flags) :]

    def send(self, data: ReadableBuffer, *flags: int) -> int:
        with self._timed():
            self.attempt.begin()
            return super().send(data, *flags)

    def recv_into(self, buffer: WriteableBuffer, *arguments: Any) -> int:
        with self._timed():
            received = super().recv_into(buffer, *arguments)
        self.attempt.count(received)
        return received

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Give an operation the time that is left, and note its error."""
        try:
            self.settimeout(self.attempt.left())
            yield
        except OSError as error:
            self.attempt.error = error
            raise


class TimedTLSSocket(TimedSocket, ssl.SSLSocket):
    """The same with TLS; the transport sets it as the class that its context makes."""

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """Receive for TLS within TLS; ssl receives before there is an attempt."""
        if not hasattr(self, "attempt"):
            return super().recv(buflen, flags)
        buffer = bytearray(buflen)
        return bytes(buffer[: self.recv_into(buffer)])


class FinalResponse(http.client.HTTPResponse):
    """The final answer: interim ones are skipped (RFC 9110 15.2); http.client skips only 100."""

    def __init__(self, sock: TimedSocket, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self._attempt = sock.attempt

    def begin(self) -> None:
        super().begin()
        while self.status in (102, 103):
            # begin() does nothing once they are set.
            vars(self).update(headers=None)
            super().begin()
        if self._attempt.ended:
            raise http.client.IncompleteRead(b"")
        self._attempt.head = self


class PlainConnection(HTTPConnection):
    """A connection that connects first, then sends, and reports both to its attempt."""

    response_class = FinalResponse
    sock: TimedSocket

    def __init__(self, *arguments: Any, attempt: Attempt, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._attempt = attempt

    def connect(self) -> None:
        """Connect, with tunnel and TLS; raise AttemptFailed."""
        attempt = self._attempt
        try:
            super().connect()
        except (OSError, ValueError, http.client.HTTPException, Unusable) as error:
            self.close()
            attempt.error = None  # its traceback would keep the socket open
            failed = attempt.explain(error)
            where = f" ({attempt.proxy})" if attempt.proxy else ""
            raise AttemptFailed(f"{failed}{where}", False, failed.hopeless) from None
        # Otherwise urllib3 warns; the task has a warning of its own.
        self.is_verified = True
        # TLS within TLS, to an https:// proxy, is around a socket.
        sock = getattr(self.sock, "socket", self.sock)
        if not isinstance(sock, TimedSocket):
            raise ServicesError("this urllib3 is too new: it opens connections in another way")
        self.sock.attempt = sock.attempt = attempt
        attempt.is_connected = True

    def _new_conn(self) -> socket.socket:
        """Look up the host and connect, all within connect_timeout; raise OSError or ValueError.

        An address that drops packets must not use up the time: each gets its share. urllib3 would
        go on after some errors, such as ECONNRESET, to read an early answer.
        """
        attempt = self._attempt
        addresses = socket.getaddrinfo(self._dns_host, self.port, 0, socket.SOCK_STREAM)
        error = OSError()
        for number, (family, kind, protocol, _name, address) in enumerate(addresses):
            sock = TimedSocket(family, kind, protocol)
            sock.attempt = attempt
            try:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.settimeout(attempt.left(connecting=True) / (len(addresses) - number))
                sock.connect(address)
                # For the TLS handshake, which it bounds as a whole.
                sock.settimeout(attempt.left())
            except OSError as failed:
                sock.close()
                error = failed
            else:
                attempt.explain = _no_tls
                return sock
        raise error

    def _tunnel(self) -> None:
        """Ask the proxy, whose answer may come slowly; CONNECT contains nothing of the request."""
        attempt = self._attempt
        # An https:// proxy has a TLS socket of its own.
        self.sock.attempt = attempt
        attempt.explain = _no_tunnel
        super()._tunnel()
        self.sock.settimeout(attempt.left())
        attempt.explain = _no_tls
        attempt.proxy = ""


class TLSConnection(PlainConnection, HTTPSConnection):
    """The same with TLS."""


def _no_connection(error: Exception) -> AttemptFailed:
    """Return why a host could not be looked up, or did not accept a connection."""
    if isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN:
        return AttemptFailed("the host name cannot be resolved at the moment")
    if isinstance(error, (socket.gaierror, UnicodeError)):
        return AttemptFailed("the host name does not exist", hopeless=True)
    if isinstance(error, socket.timeout):
        return AttemptFailed("connecting timed out")
    reason = getattr(error, "strerror", None) or type(error).__name__
    return AttemptFailed(f"no connection: {reason}")


def _no_tunnel(error: Exception) -> AttemptFailed:
    """Return why a proxy gave no tunnel; its status is in the text of an OSError, nowhere else."""
    if isinstance(error, socket.timeout):
        return AttemptFailed("the proxy took too long to answer CONNECT")
    words = str(error).partition("Tunnel connection failed: ")[2].split()
    if not words:
        return AttemptFailed("the proxy gave no usable answer to CONNECT")
    status = words[0][:3]
    advice = f": it {REQUIRES_CREDENTIALS}" if status == "407" else ""
    text = f"the proxy answered CONNECT with status {status}{advice}"
    return AttemptFailed(text, hopeless=not status.startswith("5"))


def _no_tls(error: Exception) -> AttemptFailed:
    """Return why a TLS handshake failed."""
    if isinstance(error, socket.timeout):
        return AttemptFailed("the TLS handshake timed out")
    if isinstance(error, ValueError):  # ssl.SSLCertVerificationError, or of urllib3 1.26
        why = getattr(error, "verify_message", "it is not valid for this host")
        text = (
            f"the certificate was not accepted: {why}; if its authority is your own, set ca_path to"
            " the file of the authority"
        )
    elif not isinstance(error, ssl.SSLError) or isinstance(error, TLS_ENDED):
        return AttemptFailed("the connection was lost during the TLS handshake")
    else:
        text = (
            f"the TLS handshake failed: {error.reason}; the server may speak plain HTTP, or require"
            " a client certificate, or a different one (client_cert)"
        )
    return AttemptFailed(text, hopeless=True)
