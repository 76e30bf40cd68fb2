# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a transport needs to know to make its connections."""

from __future__ import annotations

from typing import Mapping, NamedTuple

from .proxies import Proxies


class ConnectionSettings(NamedTuple):
    """How to make connections; hashable, so that a transport can be cached by its settings."""

    connect_timeout: float = 10.0  # seconds
    proxies: Proxies = Proxies()
    validate_certs: bool = True
    ca_path: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    system_trust: tuple[str | None, ...] = ()  # from the environment, see `trust_named_in`


def trust_named_in(environment: Mapping[str, str]) -> tuple[str | None, ...]:
    """Return the values of the variables that tell OpenSSL where to find the certificates of authorities."""
    return tuple(environment.get(name) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"))
