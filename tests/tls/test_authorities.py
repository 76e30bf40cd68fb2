"""Which authorities are trusted: ca_path as a file or a directory, and what the environment may
add.
"""

from __future__ import annotations

import pytest
import requests.utils
from ansible_collections.infrastructure.services.plugins.module_utils._http import (
    transport,
)
from support import CREATE, run_task

GOOD, OTHER, MISSING, HASHED = "ca", "other_ca", "missing", "directory"

BUNDLES, OWN = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"), "INFRASTRUCTURE_SERVICES_CA_PATH"
# ca_path, the environment: the outcome.
TRUST = {
    "option": (GOOD, {}, "accepted"),
    "REQUESTS_CA_BUNDLE": (None, {"REQUESTS_CA_BUNDLE": GOOD}, "accepted"),
    "CURL_CA_BUNDLE": (None, {"CURL_CA_BUNDLE": GOOD}, "accepted"),
    "own variable first": (None, {OWN: GOOD, "REQUESTS_CA_BUNDLE": OTHER}, "accepted"),
    "requests before curl": (
        None,
        {"REQUESTS_CA_BUNDLE": OTHER, "CURL_CA_BUNDLE": GOOD},
        "not_sent",
    ),
    "option over a wrong bundle": (GOOD, dict.fromkeys(BUNDLES, OTHER), "accepted"),
    "option over a missing bundle": (GOOD, {"REQUESTS_CA_BUNDLE": MISSING}, "accepted"),
    "bundle cannot widen the option": (OTHER, dict.fromkeys(BUNDLES, GOOD), "not_sent"),
    "directory of hashed names": (HASHED, {}, "accepted"),
    "SSL_CERT_FILE": (None, {"SSL_CERT_FILE": GOOD}, "accepted"),
    "SSL_CERT_DIR": (None, {"SSL_CERT_DIR": HASHED}, "accepted"),
    "SSL_CERT_FILE of another authority": (None, {"SSL_CERT_FILE": OTHER}, "not_sent"),
    "option replaces SSL_CERT_FILE": (OTHER, {"SSL_CERT_FILE": GOOD}, "not_sent"),
}


@pytest.fixture(autouse=True)
def nothing_loaded() -> None:
    """Have each test load the authorities by its own environment."""
    transport.tls_context.cache_clear()


@pytest.mark.parametrize(("ca_path", "environment", "outcome"), TRUST.values(), ids=TRUST)
def test_which_authorities_are_trusted(
    certificates, https, monkeypatch, ca_path, environment, outcome
):
    paths = {
        GOOD: certificates.ca,
        OTHER: certificates.other_ca,
        MISSING: "/missing/ca.pem",
        HASHED: certificates.hashed,
    }
    for name, which in environment.items():
        monkeypatch.setenv(name, paths[which])
    service = https(certificates.context("good"))
    result = run_task(
        CREATE, base_url=service.url, **({"ca_path": paths[ca_path]} if ca_path else {})
    )
    assert result["outcome"] == outcome, result
    assert len(service.api.conversation) == (outcome == "accepted")


@pytest.mark.parametrize(("system", "brought"), [("ca", "other_ca"), ("other_ca", "ca")])
def test_system_and_requests_are_both_trusted(certificates, https, monkeypatch, system, brought):
    monkeypatch.setenv("SSL_CERT_FILE", getattr(certificates, system))
    monkeypatch.setattr(requests.utils, "DEFAULT_CA_BUNDLE_PATH", getattr(certificates, brought))
    service = https(certificates.context("good"))
    assert run_task(CREATE, base_url=service.url)["outcome"] == "accepted"
    assert (
        run_task(CREATE, base_url=service.url, ca_path=certificates.other_ca)["outcome"]
        == "not_sent"
    )


@pytest.mark.parametrize("bundle", BUNDLES)
def test_no_bundle_turns_validation_on_again(certificates, https, monkeypatch, bundle):
    monkeypatch.setenv(bundle, certificates.other_ca)
    service = https(certificates.context("good"))
    assert run_task(CREATE, base_url=service.url, validate_certs=False)["outcome"] == "accepted"


NO_PEM = "contains no certificate in PEM form"
UNUSABLE = {
    "missing": (lambda made: "/missing/ca.pem", "cannot be read: No such file or directory"),
    "not PEM": (lambda made: made.file("text.pem", b"no certificate"), NO_PEM),
    "DER": (lambda made: made.file("ca.der", b"\x30\x82\x01\x00"), NO_PEM),
}


@pytest.mark.parametrize(("path", "why"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_ca_path_that_cannot_be_used_is_an_invalid_option(certificates, https, path, why):
    service = https(certificates.context("good"))
    result = run_task(CREATE, base_url=service.url, ca_path=path(certificates))
    assert result["failed"]
    assert result["outcome"] == "not_sent"
    assert result["msg"].startswith("ca_path: ")
    assert why in result["msg"]
    assert service.api.conversation == []
