# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which authorities are trusted: ca_path as a file or a directory, and what the environment may
add.
"""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from ansible.module_utils import urls
from ansible_collections.infrastructure.services.plugins.module_utils._http import (
    tls_context,
    transport,
)
from support import CREATE, run_task

GOOD, OTHER, MISSING, HASHED = "ca", "other_ca", "missing", "directory"

# ca_path, the environment, validate_certs: the outcome.
TRUST = {
    "option": (GOOD, {}, "accepted"),
    "REQUESTS_CA_BUNDLE": (None, {"REQUESTS_CA_BUNDLE": GOOD}, "accepted"),
    "CURL_CA_BUNDLE": (None, {"CURL_CA_BUNDLE": GOOD}, "accepted"),
    "own variable": (None, {"INFRASTRUCTURE_SERVICES_CA_PATH": GOOD}, "accepted"),
    "own variable first": (
        None,
        {"INFRASTRUCTURE_SERVICES_CA_PATH": GOOD, "REQUESTS_CA_BUNDLE": OTHER},
        "accepted",
    ),
    "requests before curl": (
        None,
        {"REQUESTS_CA_BUNDLE": OTHER, "CURL_CA_BUNDLE": GOOD},
        "not_sent",
    ),
    "option over a wrong bundle": (
        GOOD,
        {"REQUESTS_CA_BUNDLE": OTHER, "CURL_CA_BUNDLE": OTHER},
        "accepted",
    ),
    "option over a missing bundle": (GOOD, {"REQUESTS_CA_BUNDLE": MISSING}, "accepted"),
    "bundle cannot widen the option": (
        OTHER,
        {"REQUESTS_CA_BUNDLE": GOOD, "CURL_CA_BUNDLE": GOOD},
        "not_sent",
    ),
    "bundle of another authority": (None, {"REQUESTS_CA_BUNDLE": OTHER}, "not_sent"),
    "SSL_CERT_FILE": (None, {"SSL_CERT_FILE": GOOD}, "accepted"),
    "SSL_CERT_DIR": (None, {"SSL_CERT_DIR": HASHED}, "accepted"),
    "SSL_CERT_FILE of another authority": (None, {"SSL_CERT_FILE": OTHER}, "not_sent"),
    "option replaces SSL_CERT_FILE": (OTHER, {"SSL_CERT_FILE": GOOD}, "not_sent"),
    "option over SSL_CERT_FILE": (GOOD, {"SSL_CERT_FILE": OTHER}, "accepted"),
}


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
    monkeypatch.setattr(transport, "DEFAULT_CA_BUNDLE_PATH", getattr(certificates, brought))
    service = https(certificates.context("good"))
    assert run_task(CREATE, base_url=service.url)["outcome"] == "accepted"
    assert (
        run_task(CREATE, base_url=service.url, ca_path=certificates.other_ca)["outcome"]
        == "not_sent"
    )


@pytest.fixture
def found_by_uri(monkeypatch):
    """Set what ansible-core finds where ansible.builtin.uri looks for authorities."""
    real = urls.get_ca_certs()

    def found(data: bytes) -> None:
        monkeypatch.setattr(urls, "get_ca_certs", lambda: (*real[:-2], bytearray(data), real[-1]))

    tls_context._new_context.cache_clear()
    yield found
    tls_context._new_context.cache_clear()


@pytest.mark.parametrize("is_found", [True, False])
def test_what_uri_trusts_is_trusted(certificates, https, found_by_uri, is_found):
    company = ssl.PEM_cert_to_DER_cert(Path(certificates.ca).read_text())
    found_by_uri(company if is_found else b"")
    service = https(certificates.context("good"))
    assert run_task(CREATE, base_url=service.url)["outcome"] == (
        "accepted" if is_found else "not_sent"
    )
    assert (
        run_task(CREATE, base_url=service.url, ca_path=certificates.other_ca)["outcome"]
        == "not_sent"
    )


def test_ansible_core_returns_what_it_found_last_but_one():
    assert isinstance(urls.get_ca_certs()[-2], bytearray)


@pytest.mark.parametrize("bundle", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_no_bundle_turns_validation_on_again(certificates, https, monkeypatch, bundle):
    monkeypatch.setenv(bundle, certificates.other_ca)
    service = https(certificates.context("good"))
    assert run_task(CREATE, base_url=service.url, validate_certs=False)["outcome"] == "accepted"


def test_a_directory_of_hashed_names_is_trusted(certificates, https):
    service = https(certificates.context("good"))
    assert (
        run_task(CREATE, base_url=service.url, ca_path=certificates.hashed)["outcome"] == "accepted"
    )


UNUSABLE = {
    "missing": (lambda made: "/missing/ca.pem", "cannot be read: No such file or directory"),
    "not PEM": (
        lambda made: made.file("text.pem", b"no certificate"),
        "contains no certificate in PEM form",
    ),
    "empty file": (lambda made: made.file("empty.pem"), "contains no certificate in PEM form"),
    "DER": (
        lambda made: made.file("ca.der", b"\x30\x82\x01\x00"),
        "contains no certificate in PEM form",
    ),
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
