# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files that TLS needs, read before anything is sent, so that a wrong one is an error that names its option."""

from __future__ import annotations

import os
import re
import ssl

from .._errors import InvalidInput

_HASHED = re.compile("[0-9a-f]{8}[.][0-9]+")  # a certificate in a directory of them


def verification(validate_certs: bool, ca_path: str | None) -> bool | str:
    """Return what requests calls verify: off, the usual authorities, or where others are; raise InvalidInput."""
    if not validate_certs:
        return False
    if not ca_path:
        return True
    try:
        if not os.path.isdir(ca_path):
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=ca_path)
        elif not any(map(_HASHED.fullmatch, os.listdir(ca_path))):
            raise InvalidInput(
                "ca_path", "has no certificate under the name that OpenSSL looks for (see openssl rehash)"
            )
    except ssl.SSLError:
        raise InvalidInput("ca_path", "holds no certificate in PEM form") from None
    except OSError as error:
        raise InvalidInput("ca_path", f"cannot be read: {error.strerror}") from None
    return ca_path


def certificate(client_cert: str | None, client_key: str | None) -> tuple[str, str] | str | None:
    """Return what requests calls cert: nothing, one file with both, or certificate and key; raise InvalidInput."""
    if not client_cert:
        if client_key:
            raise InvalidInput("client_key", "needs client_cert beside it")
        return None
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(client_cert, client_key, password=_no_password)
    except ssl.SSLError:
        raise InvalidInput(
            "client_cert", "client_cert and client_key are not a certificate and its unencrypted key in PEM form"
        ) from None
    except OSError as error:
        raise InvalidInput("client_cert", f"client_cert or client_key cannot be read: {error.strerror}") from None
    return (client_cert, client_key) if client_key else client_cert


def _no_password() -> str:
    """Answer for an encrypted key, where OpenSSL would ask at the terminal."""
    return ""
