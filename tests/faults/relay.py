"""A script for what stands in front of the service: a proxy, or a connection that is cut."""

from __future__ import annotations

import select
import socket

from support.service import PATIENCE, Peer


class _CutError(Exception):
    """The connection ends here, by an end of stream."""


class Relay:
    """Connects each peer to a port of this machine; an end of stream and a reset are passed on as
    such.

    `tunnel`: expect a CONNECT first, as a proxy does.
    """

    def __init__(self, port: int, *, tunnel: bool = False) -> None:
        self.to, self.tunnel = ("127.0.0.1", port), tunnel
        self.cut: tuple[int, bool] | None = (
            None  # once: after how many bytes from the service, and whether by a reset
        )

    def __call__(self, peer: Peer) -> None:
        """Relay until both sides have ended."""
        with socket.create_connection(self.to, PATIENCE) as far:
            far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            target = {peer.sock: far, far: peer.sock}
            carried = dict.fromkeys(target, 0)
            try:
                if self.tunnel:
                    _accept_connect(peer)
                while carried:
                    for source in select.select(list(carried), (), (), PATIENCE)[0]:
                        self._carry(source, target[source], carried, comes_back=source is far)
            except _CutError:
                peer.sock.close()
            except OSError:  # a reset on one side becomes a reset on the other
                peer.rst()
                Peer(peer.service, far, peer.number).rst()

    def _carry(self, source, target, carried: dict[socket.socket, int], comes_back: bool) -> None:
        """Pass on what has arrived; at an end of stream drop the source."""
        data = source.recv(65536)
        if comes_back and self.cut and carried[source] + len(data) >= self.cut[0]:
            (at, by_reset), self.cut = self.cut, None
            target.sendall(data[: at - carried[source]])
            raise ConnectionResetError if by_reset else _CutError
        if not data:
            del carried[source]
            target.shutdown(socket.SHUT_WR)
            return
        target.sendall(data)
        carried[source] += len(data)


def _accept_connect(peer: Peer) -> None:
    """Read a whole CONNECT, which may arrive in pieces, and accept it."""
    if not peer.request():
        raise ConnectionResetError
    peer.say(b"HTTP/1.1 200 OK\r\n\r\n")
