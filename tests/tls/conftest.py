"""Certificates of every kind, as files, and the emulator using them."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives import serialization
from emulator.server import Running, start

# This host, by an address that is not called loopback: only such a host is reached through a proxy.
BEHIND_PROXY = "0.0.0.0"
PAST = datetime(2020, 1, 1, tzinfo=timezone.utc)


class Certificates:
    """An authority that the tests trust, one that nothing trusts, and the certificates they issued."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.authority, self.stranger = trustme.CA(), trustme.CA()
        self._issued = {
            "good": self.authority.issue_cert("127.0.0.1", "localhost", BEHIND_PROXY),
            "expired": self.authority.issue_cert(
                "127.0.0.1", not_before=PAST, not_after=PAST.replace(year=2021)
            ),
            "wrong host": self.authority.issue_cert("elsewhere.example"),
            "unknown authority": self.stranger.issue_cert("127.0.0.1"),
        }
        self._clients = {
            "known": self.authority.issue_cert("client"),
            "unknown": self.stranger.issue_cert("client"),
        }
        self.ca = str(directory / "ca.pem")
        self.other_ca = str(directory / "other-ca.pem")
        self.authority.cert_pem.write_to_path(self.ca)
        self.stranger.cert_pem.write_to_path(self.other_ca)
        self.hashed = self.directory("trusted", hashed=True)

    def file(self, name: str, content: bytes = b"") -> str:
        """Write a file and return its path."""
        path = self._directory / name
        path.write_bytes(content)
        return str(path)

    def server_files(self, kind: str) -> tuple[str, str]:
        """Write a server's certificate and its key; return the two paths."""
        issued = self._issued[kind]
        certificate = b"".join(chain.bytes() for chain in issued.cert_chain_pems)
        return self.file(f"{kind}.pem", certificate), self.file(
            f"{kind}.key", issued.private_key_pem.bytes()
        )

    def client(self, kind: str = "known", password: bytes = b"") -> tuple[str, str, str]:
        """Write a client's certificate, its key, and both in one file; return the three paths."""
        issued = self._clients[kind]
        certificate, key = (
            b"".join(chain.bytes() for chain in issued.cert_chain_pems),
            issued.private_key_pem.bytes(),
        )
        if password:
            loaded = serialization.load_pem_private_key(key, None)
            encryption = serialization.BestAvailableEncryption(password)
            key = loaded.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
            )
        files = {"certificate": certificate, "key": key, "both": key + certificate}
        label = f"{kind}-{'encrypted' if password else 'plain'}"
        return tuple(self.file(f"{label}-{name}.pem", content) for name, content in files.items())

    def directory(self, name: str, *, hashed: bool) -> str:
        """Make a directory with the trusted authority, named as OpenSSL looks it up, or otherwise."""
        path = self._directory / name
        path.mkdir()
        shutil.copy(self.ca, path / "ca.pem")
        if hashed:
            subprocess.run(["openssl", "rehash", str(path)], check=True)
        return str(path)

    def context(
        self, kind: str, demand: bool = False, version: ssl.TLSVersion | None = None
    ) -> ssl.SSLContext:
        """Return the server context for a certificate; `demand`: clients also need one from the
        authority.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._issued[kind].configure_cert(context)
        if demand:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.ca)
        if version:
            context.minimum_version = context.maximum_version = version
        return context


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Create the certificates once."""
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def https() -> Iterator[Callable[..., Running]]:
    """Start the emulator behind a TLS context (None: plain HTTP), as often as a test needs."""
    with ExitStack() as stack:
        yield lambda context: stack.enter_context(start(ssl_context=context, roles=["role-0001"]))
