# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why an attempt got no answer, and what that proves.

No message contains the text of a library's exception, because it may quote a secret.
"""

from __future__ import annotations

import re
import socket
import ssl
from typing import Iterator

from .._errors import AttemptFailed
from .exchange import MAX_ANSWER, TOO_LONG, TooLong
from .sockets import Meter, Phase

REQUIRES_CREDENTIALS = "requires credentials; put them in the proxy's URL, or set use_proxy: false"
# The TLS alerts with which a server rejects the client's certificate (RFC 8446 section 6.2).
_CERTIFICATE_ALERT = re.compile("ALERT_.*(CERTIFICATE|UNKNOWN_CA|HANDSHAKE_FAILURE|ACCESS_DENIED)")
_WANTS_CERTIFICATE = (
    "which means that it requires a client certificate, or a different one (client_cert)"
)
# OpenSSL's reasons if the server does not speak TLS.
_NOT_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG")
# OpenSSL's X509_V_ERR codes for a certificate without a trusted authority.
_UNTRUSTED = (18, 19, 20, 21)


def failed_attempt(error: BaseException, meter: Meter) -> AttemptFailed:
    """Return why an attempt got no answer, and whether anything was sent."""
    cause = _root_cause(error)
    if meter.sent:
        return AttemptFailed(_why_lost(cause), sent=True)
    explain = _EXPLANATIONS.get(meter.phase, _unusable)
    return explain(cause, meter.peer)


def body_problem(error: BaseException, meter: Meter) -> tuple[str, bool]:
    """Return why a body could not be read to its end, and whether it was cut off."""
    cause = _root_cause(error)
    if isinstance(cause, TooLong):
        return TOO_LONG, False
    if any(isinstance(link, socket.timeout) for link in _chain(error)):
        return "it took too long", True
    if meter.ended or isinstance(cause, OSError):
        return "the connection ended too early", True
    return "its chunks are malformed", True


def _why_lost(cause: BaseException) -> str:
    """Return why a request of which at least a byte was handed over got no answer."""
    if isinstance(cause, TooLong):
        return f"{MAX_ANSWER} bytes arrived without the end of a header block"
    if isinstance(cause, socket.timeout):
        return "no complete answer arrived in time"
    if alert := _certificate_alert(cause):
        return f"the server closed the connection with {alert}, {_WANTS_CERTIFICATE}"
    return "the connection was lost before a complete answer arrived, or what arrived is not HTTP"


def _root_cause(error: BaseException) -> BaseException:
    """Return the error of the operating system or of OpenSSL behind a library's wrappers."""
    for link in _chain(error):
        if isinstance(link, OSError) or _is_mismatch(link):
            return link
    return error


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes, outermost first.

    urllib3 keeps some causes in `reason` or as an argument.
    """
    seen: list[BaseException] = []
    links: list[object] = [error]
    while links:
        link = links.pop(0)
        if isinstance(link, BaseException) and link not in seen:
            seen.append(link)
            yield link
            inner = (link.__cause__, link.__context__, getattr(link, "reason", None), *link.args)
            links = [*inner]


def _is_mismatch(error: BaseException) -> bool:
    """Return whether urllib3 1.26 found that the certificate is for another host.

    Its class moved between releases.
    """
    return type(error).__name__ == "CertificateError"


def _certificate_alert(cause: BaseException) -> str:
    """Return the TLS alert that rejected the client's certificate, '' if there is none."""
    reason = (isinstance(cause, ssl.SSLError) and cause.reason) or ""
    return reason if _CERTIFICATE_ALERT.search(reason) else ""


def _unsent(why: str, peer: str, hopeless: bool = False, hint: str = "") -> AttemptFailed:
    place = f" ({peer})" if peer else ""
    return AttemptFailed(f"{why}{place}{hint}", sent=False, hopeless=hopeless)


def _look_up_failed(cause: BaseException, peer: str) -> AttemptFailed:
    if isinstance(cause, socket.gaierror) and cause.errno != socket.EAI_AGAIN:
        return _unsent("the host name does not exist", peer, hopeless=True)
    return _unsent("the host name cannot be resolved at the moment", peer)


def _connect_failed(cause: BaseException, peer: str) -> AttemptFailed:
    if isinstance(cause, socket.timeout):
        return _unsent("connecting timed out", peer)
    why = getattr(cause, "strerror", None) or type(cause).__name__
    return _unsent(f"no connection: {why}", peer)


def _proxy_failed(cause: BaseException, peer: str) -> AttemptFailed:
    """Find the status of a refused CONNECT in the text of an OSError: it stands nowhere else."""
    if isinstance(cause, socket.timeout):
        return _unsent("the proxy took too long to answer CONNECT", peer)
    if isinstance(cause, TooLong):
        why = f"what the proxy answered to CONNECT is longer than {MAX_ANSWER} bytes"
        return _unsent(why, peer)
    words = str(cause).partition("Tunnel connection failed: ")[2].split()
    if not words:
        return _unsent("the proxy did not answer CONNECT", peer)
    status = words[0][:3]
    advice = f": it {REQUIRES_CREDENTIALS}" if status == "407" else ""
    why = f"the proxy answered CONNECT with status {status}{advice}"
    return _unsent(why, peer, hopeless=not status.startswith("5"))


def _tls_failed(cause: BaseException, peer: str) -> AttemptFailed:
    if _is_mismatch(cause):
        host = peer.partition(" port ")[0]
        why = f"the certificate was not accepted: certificate is not valid for '{host}'"
        return _unsent(why, peer, hopeless=True)
    if isinstance(cause, ssl.SSLCertVerificationError):
        is_untrusted = cause.verify_code in _UNTRUSTED
        hint = "; to trust it, set ca_path to the file of its authority" if is_untrusted else ""
        why = f"the certificate was not accepted: {cause.verify_message}"
        return _unsent(why, peer, hopeless=True, hint=hint)
    if isinstance(cause, socket.timeout):
        return _unsent("the TLS handshake timed out", peer)
    is_lost = isinstance(cause, (ssl.SSLEOFError, ssl.SSLZeroReturnError))
    if is_lost or not isinstance(cause, ssl.SSLError):
        return _unsent("the connection was lost during the TLS handshake", peer)
    hint = ", probably because the server speaks plain HTTP" if cause.reason in _NOT_TLS else ""
    if _certificate_alert(cause):
        hint = f", {_WANTS_CERTIFICATE}"
    return _unsent(f"the TLS handshake failed: {cause.reason}{hint}", peer, hopeless=True)


def _unusable(cause: BaseException, peer: str) -> AttemptFailed:
    if isinstance(cause, socket.timeout):
        return _unsent("this attempt timed out before the request was sent", peer)
    why = "requests cannot use the address, the proxy or the certificate of this request"
    return _unsent(why, "", hopeless=True)


# For each phase before the request: why no byte of it was handed over.
_EXPLANATIONS = {
    Phase.LOOK_UP: _look_up_failed,
    Phase.CONNECT: _connect_failed,
    Phase.PROXY: _proxy_failed,
    Phase.TLS: _tls_failed,
}
