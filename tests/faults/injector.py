"""Makes the n-th socket call of the collection fail, below everything that it and its libraries do."""

from __future__ import annotations

import errno
import socket
import ssl
import threading
from typing import Callable
from unittest import mock

from support.service import THREAD

# Each way in which a call can fail. The "late" ones let the call take effect first, as when the
# reply to it is lost.
FAULTS = ("timeout", "late timeout", "reset", "late reset", "end", "short")

_CALLS = {
    (socket.socket, "connect"): "connect",
    (socket.socket, "send"): "send",
    (socket.socket, "recv_into"): "receive",
    (ssl.SSLSocket, "do_handshake"): "handshake",
    (ssl.SSLSocket, "send"): "send",
    (ssl.SSLSocket, "recv_into"): "receive",
}
_AT_END = {
    "connect": OSError(errno.EHOSTUNREACH, "scripted"),
    "handshake": ssl.SSLEOFError(ssl.SSL_ERROR_EOF, "scripted"),
    "send": BrokenPipeError(errno.EPIPE, "scripted"),
}


class Injector:
    """Counts the socket calls but those of services, and fails the `nth`; a broken socket stays broken."""

    def __init__(self, nth: int, fault: str) -> None:
        self.nth, self.fault, self.calls = nth, fault, 0
        self._broken = []
        self._patches = [
            mock.patch.object(cls, name, self._wrapped(kind, getattr(cls, name)))
            for (cls, name), kind in _CALLS.items()
        ]

    @property
    def fired(self) -> bool:
        return self.calls >= self.nth

    def __enter__(self) -> Injector:
        for patch in self._patches:
            patch.start()
        return self

    def __exit__(self, *args) -> None:
        for patch in self._patches:
            patch.stop()

    def _wrapped(self, kind: str, real: Callable) -> Callable:
        def call(sock, *args):
            if threading.current_thread().name == THREAD:
                return real(sock, *args)
            if any(broken is sock for broken in self._broken):
                return self._fail(kind)
            self.calls += 1
            chosen = self.calls == self.nth
            if chosen and self.fault == "short" and kind in ("send", "receive"):
                args = [memoryview(data)[:1] for data in args]
            if not chosen or self.fault == "short":
                return real(sock, *args)
            if self.fault.startswith("late"):
                real(sock, *args)
            self._broken.append(sock)
            return self._fail(kind)

        return call

    def _fail(self, kind: str) -> int:
        if self.fault.endswith("timeout"):
            raise socket.timeout("scripted")
        if self.fault.endswith("reset"):
            raise ConnectionResetError(errno.ECONNRESET, "scripted")
        if kind == "receive":
            return 0
        raise _AT_END[kind]
