# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How far an attempt came, and why it got no answer, explained from the exception of the library.

The text of that exception is never shown: it may quote a secret.
"""

from __future__ import annotations

import re
import socket
import ssl
from enum import Enum
from typing import Iterator

from .._errors import AttemptFailed
from .exchange import MAX_ANSWER, TooLong, too_long

_REJECTS_OUR_CERTIFICATE = re.compile(
    "ALERT_.*(CERTIFICATE|UNKNOWN_CA|HANDSHAKE_FAILURE|ACCESS_DENIED)"
)
REQUIRES_CREDENTIALS = "requires credentials; put them in the proxy's URL, or set use_proxy: false"
_WANTS_CERTIFICATE = (
    "which means that it requires a client certificate, or a different one (client_cert)"
)
_NOT_TLS = (
    "WRONG_VERSION_NUMBER",
    "HTTP_REQUEST",
    "PACKET_LENGTH_TOO_LONG",
)  # OpenSSL's reasons when it is not TLS
_UNTRUSTED = (
    18,
    19,
    20,
    21,
)  # OpenSSL's X509_V_ERR codes for a certificate without a trusted authority


class Phase(Enum):
    """The phase of an attempt: on a kept-alive connection it starts with REQUEST, on a new one with
    LOOK_UP.
    """

    LOOK_UP = "look-up"
    CONNECT = "connect"
    PROXY = "proxy"
    TLS = "tls"
    REQUEST = "request"


def is_timeout(error: BaseException) -> bool:
    """Whether a timeout is the cause."""
    return any(isinstance(link, socket.timeout) for link in _chain(error))


def failure(error: BaseException, meter) -> AttemptFailed:
    """Return what is proven of an attempt that got no answer, and why; `meter`: the Meter of the
    attempt.
    """
    cause = _cause(error)
    if meter.sent:
        return AttemptFailed(_lost(cause), sent=True)
    hopeless, why = _EXPLAIN.get(meter.phase, _unusable)(cause, meter.peer)
    return AttemptFailed(why, sent=False, hopeless=hopeless)


def body_failure(error: BaseException, meter) -> tuple[str, bool]:
    """Return why a body could not be read to its end, and whether it was cut off rather than too
    long.
    """
    cause = _cause(error)
    if isinstance(cause, TooLong):
        return too_long(), False
    if is_timeout(error):
        return "it took too long", True
    if meter.ended or isinstance(cause, OSError):
        return "the connection ended too early", True
    return "its chunks are malformed", True


def _lost(cause: BaseException) -> str:
    """Return why a request of which at least a byte was handed over got no answer."""
    if isinstance(cause, TooLong):
        return f"{MAX_ANSWER} bytes arrived without the end of a header block"
    if isinstance(cause, socket.timeout):
        return "no complete answer arrived in time"
    if _rejects_our_certificate(cause):
        return f"the server closed the connection with {cause.reason}, {_WANTS_CERTIFICATE}"
    return "the connection was lost before a complete answer arrived, or what arrived is not HTTP"


def _cause(error: BaseException) -> BaseException:
    """Return the error of the operating system or of OpenSSL behind a library's wrappers."""
    return next(
        (link for link in _chain(error) if isinstance(link, OSError) or _is_mismatch(link)), error
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and what caused it, outermost first; urllib3 keeps some causes in `reason` or
    as an argument.
    """
    seen: list[BaseException] = []
    while isinstance(error, BaseException) and error not in seen:
        seen.append(error)
        yield error
        links = (getattr(error, "reason", None), *error.args)
        error = (
            error.__cause__
            or error.__context__
            or next((link for link in links if isinstance(link, BaseException)), None)
        )


def _is_mismatch(error: BaseException) -> bool:
    """Whether urllib3 1.26 itself found the certificate to be for another host; its class moved
    between releases.
    """
    return type(error).__name__ == "CertificateError"


def _look_up_failed(cause: BaseException, peer: str) -> tuple[bool, str]:
    if isinstance(cause, socket.gaierror) and cause.errno != socket.EAI_AGAIN:
        return True, f"the host name does not exist ({peer})"
    return False, f"the host name cannot be resolved at the moment ({peer})"


def _connect_failed(cause: BaseException, peer: str) -> tuple[bool, str]:
    if isinstance(cause, socket.timeout):
        return False, f"connecting timed out ({peer})"
    return (
        False,
        f"no connection: {getattr(cause, 'strerror', None) or type(cause).__name__} ({peer})",
    )


def _proxy_failed(cause: BaseException, peer: str) -> tuple[bool, str]:
    """Find the status of a refused CONNECT in the text of an OSError: the standard library reports
    it nowhere else.
    """
    if isinstance(cause, socket.timeout):
        return False, f"the proxy took too long to answer CONNECT ({peer})"
    if isinstance(cause, TooLong):
        return (
            False,
            f"what the proxy answered to CONNECT is longer than {MAX_ANSWER} bytes ({peer})",
        )
    words = str(cause).partition("Tunnel connection failed: ")[2].split()
    if not words:
        return False, f"the proxy did not answer CONNECT ({peer})"
    advice = f": it {REQUIRES_CREDENTIALS}" if words[0] == "407" else ""
    return not words[0].startswith(
        "5"
    ), f"the proxy answered CONNECT with status {words[0][:3]}{advice} ({peer})"


def _tls_failed(cause: BaseException, peer: str) -> tuple[bool, str]:
    if _is_mismatch(cause):
        host = peer.partition(" port ")[0]
        return (
            True,
            f"the certificate was not accepted: certificate is not valid for '{host}' ({peer})",
        )
    if isinstance(cause, ssl.SSLCertVerificationError):
        hint = (
            "; to trust it, set ca_path to the file of its authority"
            if cause.verify_code in _UNTRUSTED
            else ""
        )
        return True, f"the certificate was not accepted: {cause.verify_message} ({peer}){hint}"
    if isinstance(cause, ssl.SSLError) and not isinstance(
        cause, (ssl.SSLEOFError, ssl.SSLZeroReturnError)
    ):
        hint = ", probably because the server speaks plain HTTP" if cause.reason in _NOT_TLS else ""
        hint = f", {_WANTS_CERTIFICATE}" if _rejects_our_certificate(cause) else hint
        return True, f"the TLS handshake failed: {cause.reason}{hint} ({peer})"
    if isinstance(cause, socket.timeout):
        return False, f"the TLS handshake timed out ({peer})"
    return False, f"the connection was lost during the TLS handshake ({peer})"


def _rejects_our_certificate(cause: BaseException) -> bool:
    """Whether this is a TLS alert with which a server rejects the client's certificate (RFC 8446
    section 6.2).
    """
    return isinstance(cause, ssl.SSLError) and bool(
        _REJECTS_OUR_CERTIFICATE.search(cause.reason or "")
    )


def _unusable(cause: BaseException, peer: str) -> tuple[bool, str]:
    if isinstance(cause, socket.timeout):
        return (
            False,
            f"this attempt timed out before the request was sent{f' ({peer})' if peer else ''}",
        )
    return True, "requests cannot use the address, the proxy or the certificate of this request"


# For each phase before the request: whether retrying is hopeless, and why no byte of it was handed
# over.
_EXPLAIN = {
    Phase.LOOK_UP: _look_up_failed,
    Phase.CONNECT: _connect_failed,
    Phase.PROXY: _proxy_failed,
    Phase.TLS: _tls_failed,
}
