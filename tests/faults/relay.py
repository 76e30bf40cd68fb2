"""A script for a proxy in front of the service."""

from __future__ import annotations

import select
import socket

from support.service import PATIENCE, Peer


class Relay:
    """A proxy that tunnels to a port of this machine, whatever CONNECT names; an end of stream and a
    reset are passed on as such.
    """

    def __init__(self, port: int) -> None:
        self.to = ("127.0.0.1", port)

    def __call__(self, peer: Peer) -> None:
        """Relay until both sides have ended."""
        with socket.create_connection(self.to, PATIENCE) as far:
            far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            target = {peer.sock: far, far: peer.sock}
            try:
                if not peer.request():
                    raise ConnectionResetError
                peer.say(b"HTTP/1.1 200 OK\r\n\r\n")
                while target:
                    for source in select.select(list(target), (), (), PATIENCE)[0]:
                        if data := source.recv(65536):
                            target[source].sendall(data)
                        else:
                            target.pop(source).shutdown(socket.SHUT_WR)
            except OSError:  # a reset on one side becomes a reset on the other
                peer.rst()
                Peer(peer.service, far, peer.number).rst()
