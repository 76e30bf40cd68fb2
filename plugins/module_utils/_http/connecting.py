# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How connections are made: name look-up, and the TLS context with the authorities and the client
certificate.

The files given as options are read before anything is sent, so that the error for a bad one names
its option.
"""

from __future__ import annotations

import os
import socket
import ssl
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from .._errors import InvalidInput
from .urls import Proxies

_one_at_a_time = (
    threading.Lock()
)  # so that threads that start together create one context, not one each


class ConnectionSettings(NamedTuple):
    """How to make connections; hashable, so that a transport can be cached by its settings."""

    connect_timeout: float = 10.0  # seconds
    proxies: Proxies = Proxies()
    validate_certs: bool = True
    ca_path: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    system_trust: tuple[str | None, ...] = ()  # SSL_CERT_FILE and SSL_CERT_DIR, which OpenSSL reads


def look_up(host: str, port: int, seconds: float) -> list[tuple]:
    """Return what socket.getaddrinfo does, within `seconds`; raise socket.gaierror or
    socket.timeout.

    The look-up of the C library has no timeout, so it runs in a thread, which is abandoned when it
    takes too long.
    """
    if host.replace(".", "").isdigit() or ":" in host:  # an address: nothing to look up
        return socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)
    found = Future()
    try:
        threading.Thread(target=_ask, args=(host, port, found), daemon=True).start()
    except RuntimeError:  # a limit on threads; better without a time limit than not at all
        _ask(host, port, found)
    try:
        return found.result(seconds)
    except FutureTimeout:
        raise socket.timeout("the name look-up took too long") from None


def _ask(host: str, port: int, future: Future) -> None:
    try:
        future.set_result(socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM))
    except UnicodeError:
        future.set_exception(socket.gaierror(socket.EAI_NONAME, "not a host name"))
    except OSError as error:
        future.set_exception(error)


def context(settings: ConnectionSettings, certifi: str) -> ssl.SSLContext:
    """Return the context for these settings, which transports in several threads may share; raise
    InvalidInput.

    `certifi`: the file of authorities that requests ships, trusted in addition to those of the
    system.
    """
    with _one_at_a_time:
        return _context(settings._replace(connect_timeout=0, proxies=None), certifi)


@lru_cache(maxsize=8)  # loading the authorities of the system and of certifi takes about 75 ms
def _context(settings: ConnectionSettings, certifi: str) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not settings.validate_certs:
        made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    elif settings.ca_path:
        made = _trusting(settings.ca_path)
    else:
        made = ssl.create_default_context()
        made.load_verify_locations(certifi)
        _trust_what_uri_does(made)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    _load_client_cert(made, settings.client_cert, settings.client_key)
    return made


def _trust_what_uri_does(made: ssl.SSLContext) -> None:
    from ansible.module_utils.urls import get_ca_certs  # noqa: PLC0415 (takes 30 ms, which only TLS should cost)

    with suppress(ssl.SSLError, ValueError):  # one is malformed, or there are none
        made.load_verify_locations(cadata=get_ca_certs()[-2])


def _trusting(ca_path: str) -> ssl.SSLContext:
    try:
        kind = "capath" if os.path.isdir(ca_path) else "cafile"
        return ssl.create_default_context(**{kind: ca_path})
    except ssl.SSLError:
        raise InvalidInput("ca_path", "contains no certificate in PEM form") from None
    except OSError as error:
        raise InvalidInput(
            "ca_path", f"{os.path.abspath(ca_path)} cannot be read: {error.strerror}"
        ) from None


def _load_client_cert(
    made: ssl.SSLContext, client_cert: str | None, client_key: str | None
) -> None:
    """Load the client's certificate, if there is one; raise InvalidInput."""
    if not client_cert:
        if client_key:
            raise InvalidInput("client_key", "needs client_cert as well")
        return
    try:
        made.load_cert_chain(
            client_cert, client_key, password=""
        )  # else OpenSSL asks for it at the terminal
    except ssl.SSLError:
        why = "client_cert and client_key are not a certificate and its unencrypted key in PEM form"
        raise InvalidInput("client_cert", why) from None
    except OSError as error:
        raise InvalidInput(
            "client_cert", f"client_cert or client_key cannot be read: {error.strerror}"
        ) from None
