# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a transport takes and returns, as plain values that are usable without requests."""

from __future__ import annotations

from typing import Mapping, NamedTuple

from .urls import Proxies


class ConnectionSettings(NamedTuple):
    """How to make connections; hashable, so that a transport can be cached by its settings."""

    connect_timeout: float = 10.0  # seconds
    proxies: Proxies = Proxies()
    validate_certs: bool = True
    ca_path: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    system_trust: tuple[str | None, ...] = ()  # SSL_CERT_FILE and SSL_CERT_DIR, which OpenSSL reads


class Request(NamedTuple):
    """A request as it is sent, except for the headers that follow from its URL and body."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes


class Answer(NamedTuple):
    """An answer whose header block is complete."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    problem: str = ""  # why the body cannot be relied on; empty when it can
    cut: bool = False  # whether it was cut off, or may have been, since only the end of the connection delimits it
