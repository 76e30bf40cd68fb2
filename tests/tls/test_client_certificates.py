"""Mutual TLS: which files are accepted, and what is known when the service requires a certificate
and gets none.
"""

from __future__ import annotations

import ssl

import pytest
from support import CREATE, UPDATE, run_task
from support.service import Peer, Service

V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


def files(certificates, name: str) -> dict[str, str]:
    """Return the options for one way of naming the files."""
    certificate, key, both = certificates.client()
    dummy, encrypted, dummy = certificates.client(password=b"secret")
    strangers, other_key, dummy = certificates.client("unknown")
    text = certificates.file("text.pem", b"no certificate")
    return {
        "two files": {"client_cert": certificate, "client_key": key},
        "one file": {"client_cert": both},
        "empty key": {"client_cert": both, "client_key": ""},
        "encrypted key": {"client_cert": certificate, "client_key": encrypted},
        "no key": {"client_cert": certificate},
        "key of another certificate": {"client_cert": certificate, "client_key": other_key},
        "certificate that is none": {"client_cert": text, "client_key": key},
        "certificate missing": {"client_cert": "/missing/client.pem", "client_key": key},
        "key missing": {"client_cert": certificate, "client_key": "/missing/key.pem"},
        "key alone": {"client_key": key},
        "other authority": {"client_cert": strangers, "client_key": other_key},
    }[name]


@pytest.mark.parametrize("version", [V12, V13], ids=["TLS 1.2", "TLS 1.3"])
@pytest.mark.parametrize("name", ["two files", "one file", "empty key"])
def test_a_client_certificate_is_accepted(certificates, https, name, version):
    service = https(certificates.context("good", demand=True, version=version))
    result = run_task(
        CREATE, base_url=service.url, ca_path=certificates.ca, **files(certificates, name)
    )
    assert result["outcome"] == "accepted", result


NOT_A_PAIR = (
    "client_cert: is not a certificate, or client_key is not its unencrypted key, in PEM form"
)
MISSING = "client_cert: this file, or that of client_key, cannot be read: No such file or directory"
PAIRS = ("encrypted key", "no key", "key of another certificate", "certificate that is none")
UNUSABLE = {
    **dict.fromkeys(PAIRS, NOT_A_PAIR),
    **dict.fromkeys(("certificate missing", "key missing"), MISSING),
    "key alone": "client_key: needs client_cert as well",
}


@pytest.mark.parametrize(("name", "why"), UNUSABLE.items())
def test_files_that_cannot_be_used_are_an_invalid_option(certificates, https, name, why):
    service = https(certificates.context("good", demand=True))
    result = run_task(
        CREATE, base_url=service.url, ca_path=certificates.ca, **files(certificates, name)
    )
    assert (result["failed"], result["outcome"], result["msg"]) == (
        True,
        "not_sent",
        f"{why}. Nothing was sent.",
    )
    assert service.api.conversation == []


@pytest.mark.parametrize("name", [None, "other authority"], ids=["none", "other authority"])
def test_tls_1_2_refuses_in_the_handshake(certificates, https, name):
    service = https(certificates.context("good", demand=True, version=V12))
    options = files(certificates, name) if name else {}
    result = run_task(CREATE, base_url=service.url, ca_path=certificates.ca, **options)
    assert (result["outcome"], result["request_attempts"]) == ("not_sent", 1)
    assert "require a client certificate, or a different one (client_cert)" in result["msg"]


@pytest.mark.parametrize(("resource", "attempts"), [(CREATE, 1), (UPDATE, 3)])
def test_tls_1_3_refuses_after_the_request_was_sent(certificates, resource, attempts):
    """For the client the handshake is over before the service checks its certificate (RFC 8446
    section 4.4.2.4).
    """
    with Service(
        Peer.request, tls=certificates.context("good", demand=True, version=V13)
    ) as service:
        result = run_task(resource, base_url=service.url, ca_path=certificates.ca, retries=2)
    assert (result["outcome"], result["request_attempts"]) == ("unknown", attempts)
    assert "ALERT_CERTIFICATE_REQUIRED; the server may require a client cert" in result["msg"]
