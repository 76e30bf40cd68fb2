# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How to connect, and the TLS context with the authorities and the client certificate.

The files given as options are read before anything is sent, so that the error for a bad one names
its option.
"""

from __future__ import annotations

import os
import ssl
import threading
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from .._errors import InvalidInput
from .urls import Proxies

# Threads that start together create one context, not one each.
_one_at_a_time = threading.Lock()


class ConnectionSettings(NamedTuple):
    """How to connect; hashable, so that a transport can be cached by its settings."""

    connect_timeout: float = 10.0  # seconds
    proxies: Proxies = Proxies()
    validate_certs: bool = True
    ca_path: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    # SSL_CERT_FILE and SSL_CERT_DIR, which OpenSSL reads.
    system_trust: tuple[str | None, ...] = ()


def tls_context(settings: ConnectionSettings, certifi: str) -> ssl.SSLContext:
    """Return the context for these settings, which threads may share; raise InvalidInput.

    `certifi`: the file of authorities that requests ships, trusted in addition to those of the
    system.
    """
    with _one_at_a_time:
        return _new_context(settings._replace(connect_timeout=0, proxies=Proxies()), certifi)


# Loading the authorities of the system and of certifi takes about 75 ms.
@lru_cache(maxsize=8)
def _new_context(settings: ConnectionSettings, certifi: str) -> ssl.SSLContext:
    if not settings.validate_certs:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif settings.ca_path:
        context = _trusting(settings.ca_path)
    else:
        context = ssl.create_default_context()
        context.load_verify_locations(certifi)
        _trust_what_uri_does(context)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _load_client_cert(context, settings.client_cert, settings.client_key)
    return context


def _trust_what_uri_does(context: ssl.SSLContext) -> None:
    from ansible.module_utils import urls  # noqa: PLC0415 (30 ms, which only TLS should cost)

    # One of the authorities is malformed, or there are none.
    with suppress(ssl.SSLError, ValueError):
        context.load_verify_locations(cadata=urls.get_ca_certs()[-2])


def _trusting(ca_path: str) -> ssl.SSLContext:
    try:
        if os.path.isdir(ca_path):
            return ssl.create_default_context(capath=ca_path)
        return ssl.create_default_context(cafile=ca_path)
    except ssl.SSLError:
        raise InvalidInput("ca_path", "contains no certificate in PEM form") from None
    except OSError as error:
        why = f"{os.path.abspath(ca_path)} cannot be read: {error.strerror}"
        raise InvalidInput("ca_path", why) from None


def _load_client_cert(
    context: ssl.SSLContext, client_cert: str | None, client_key: str | None
) -> None:
    """Load the client certificate, if there is one; raise InvalidInput."""
    if client_key and not client_cert:
        raise InvalidInput("client_key", "needs client_cert as well")
    if not client_cert:
        return
    try:
        # Without a password OpenSSL would ask for one at the terminal.
        context.load_cert_chain(client_cert, client_key, password="")
    except ssl.SSLError:
        why = "client_cert and client_key are not a certificate and its unencrypted key in PEM form"
        raise InvalidInput("client_cert", why) from None
    except OSError as error:
        why = f"client_cert or client_key cannot be read: {error.strerror}"
        raise InvalidInput("client_cert", why) from None
