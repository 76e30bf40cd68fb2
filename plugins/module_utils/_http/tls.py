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
from contextlib import contextmanager
from functools import lru_cache
from typing import Iterator, NamedTuple

from .._errors import InvalidInput

# Threads that start together create one context, not one each.
_one_at_a_time = threading.Lock()


class ConnectionSettings(NamedTuple):
    """How to connect; hashable, so that a TLS context can be cached by its settings."""

    connect_timeout: float = 10.0  # seconds
    use_proxy: bool = True
    validate_certs: bool = True
    ca_path: str | None = None
    client_cert: str | None = None
    client_key: str | None = None


def tls_context(settings: ConnectionSettings) -> ssl.SSLContext:
    """Return the context for these settings, which threads may share; raise InvalidInput."""
    with _one_at_a_time:
        return _new_context(settings)


# Loading the authorities of the system and of requests takes about 75 ms.
@lru_cache(maxsize=8)
def _new_context(settings: ConnectionSettings) -> ssl.SSLContext:
    client_cert, client_key = settings.client_cert, settings.client_key
    if not settings.validate_certs:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif settings.ca_path:
        path = os.path.abspath(settings.ca_path)
        file, directory = (None, path) if os.path.isdir(path) else (path, None)
        with _reading("ca_path", path, "contains no certificate in PEM form"):
            context = ssl.create_default_context(cafile=file, capath=directory)
    else:
        from requests.utils import DEFAULT_CA_BUNDLE_PATH  # noqa: PLC0415 (only to send)

        context = ssl.create_default_context()
        context.load_verify_locations(DEFAULT_CA_BUNDLE_PATH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if client_key and not client_cert:
        raise InvalidInput("client_key", "needs client_cert as well")
    if client_cert:
        # Without a password OpenSSL would ask for one at the terminal.
        problem = "is not a certificate, or client_key is not its unencrypted key, in PEM form"
        with _reading("client_cert", "this file, or that of client_key,", problem):
            context.load_cert_chain(client_cert, client_key or None, password="")
    return context


@contextmanager
def _reading(option: str, file: str, problem: str) -> Iterator[None]:
    """Raise InvalidInput if OpenSSL cannot read a file, or cannot use it."""
    try:
        yield
    except ssl.SSLError:
        raise InvalidInput(option, problem) from None
    except OSError as error:
        raise InvalidInput(option, f"{file} cannot be read: {error.strerror}") from None
