"""The service's certificate: what is accepted, and which message explains a refusal."""

from __future__ import annotations

import pytest
from support import CREATE, UPDATE, run_task

# certificate of the server, whether ca_path is given, part of the message; all before the first
# byte of the request.
REFUSED = {
    "unknown authority": ("unknown authority", True, "unable to get local issuer certificate"),
    "authority not given": ("good", False, "unable to get local issuer certificate"),
    "wrong host": ("wrong host", True, "not valid for"),
    "expired": ("expired", True, "certificate has expired"),
}


@pytest.mark.parametrize("resource", [CREATE, UPDATE])
@pytest.mark.parametrize(("kind", "with_ca", "why"), REFUSED.values(), ids=REFUSED)
def test_a_bad_certificate_is_refused_before_anything_is_sent(
    certificates, https, resource, kind, with_ca, why
):
    service = https(certificates.context(kind))
    options = {"ca_path": certificates.ca} if with_ca else {}
    result = run_task(resource, base_url=service.url, retries=3, **options)
    assert result["failed"]
    assert result["outcome"] == "not_sent"
    assert why in result["msg"]
    assert "if its authority is your own, set ca_path" in result["msg"]
    assert result["request_attempts"] == 1, "repeating it is useless"
    assert service.api.conversation == []


@pytest.mark.parametrize("kind", ["good", "expired"])
def test_without_validation_each_is_accepted_with_one_warning(certificates, https, recwarn, kind):
    service = https(certificates.context(kind))
    result = run_task(CREATE, base_url=service.url, validate_certs=False)
    assert result["outcome"] == "accepted"
    assert (
        len([warning for warning in result["warnings"] if "validate_certs is false" in warning])
        == 1
    )
    assert "InsecureRequestWarning" not in {warning.category.__name__ for warning in recwarn}


@pytest.mark.parametrize("scheme", ["https", "HTTPS"])
@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_the_requested_name_is_what_counts(certificates, https, name, scheme):
    service = https(certificates.context("good"))
    url = service.url.replace("127.0.0.1", name).replace("https", scheme)
    assert run_task(CREATE, base_url=url, ca_path=certificates.ca)["outcome"] == "accepted"


def test_a_service_without_tls_is_reported_as_such(https):
    service = https(None)
    result = run_task(CREATE, base_url=service.url.replace("http://", "https://"))
    assert (result["outcome"], result["request_attempts"]) == ("not_sent", 1)
    assert "the TLS handshake failed: " in result["msg"]
    assert "the server may speak plain HTTP" in result["msg"]


def test_plain_http_to_a_tls_port_is_not_reported_as_harmless(certificates, https):
    service = https(certificates.context("good"))
    result = run_task(CREATE, base_url=service.url.replace("https://", "http://"))
    assert (result["outcome"], result["request_attempts"]) == ("unknown", 1)
    assert service.api.conversation == []


@pytest.mark.parametrize("first", [True, False])
def test_validation_in_one_task_does_not_affect_the_next(certificates, https, first):
    service = https(certificates.context("unknown authority"))
    outcomes = {}
    for validate in (first, not first, first):
        outcomes[validate] = run_task(CREATE, base_url=service.url, validate_certs=validate)[
            "outcome"
        ]
    assert outcomes == {True: "not_sent", False: "accepted"}
