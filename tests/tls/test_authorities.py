# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which authorities are trusted: ca_path as a file or a directory, and what the environment may add."""

from __future__ import annotations

import platform
import ssl
from pathlib import Path

import pytest
from ansible.module_utils import urls
from ansible_collections.infrastructure.services.plugins.module_utils._http import connecting, transport
from support import CREATE, run_task

GOOD, OTHER, MISSING, HASHED = "ca", "other_ca", "missing", "directory"

# ca_path, the environment, validate_certs: the outcome.
TRUST = {
    "option": (GOOD, {}, "accepted"),
    "REQUESTS_CA_BUNDLE": (None, {"REQUESTS_CA_BUNDLE": GOOD}, "accepted"),
    "CURL_CA_BUNDLE": (None, {"CURL_CA_BUNDLE": GOOD}, "accepted"),
    "own variable": (None, {"INFRASTRUCTURE_SERVICES_CA_PATH": GOOD}, "accepted"),
    "own variable first": (None, {"INFRASTRUCTURE_SERVICES_CA_PATH": GOOD, "REQUESTS_CA_BUNDLE": OTHER}, "accepted"),
    "requests before curl": (None, {"REQUESTS_CA_BUNDLE": OTHER, "CURL_CA_BUNDLE": GOOD}, "not_sent"),
    "option over a wrong bundle": (GOOD, {"REQUESTS_CA_BUNDLE": OTHER, "CURL_CA_BUNDLE": OTHER}, "accepted"),
    "option over a missing bundle": (GOOD, {"REQUESTS_CA_BUNDLE": MISSING}, "accepted"),
    "bundle cannot widen the option": (OTHER, {"REQUESTS_CA_BUNDLE": GOOD, "CURL_CA_BUNDLE": GOOD}, "not_sent"),
    "bundle of another authority": (None, {"REQUESTS_CA_BUNDLE": OTHER}, "not_sent"),
    "SSL_CERT_FILE": (None, {"SSL_CERT_FILE": GOOD}, "accepted"),
    "SSL_CERT_DIR": (None, {"SSL_CERT_DIR": HASHED}, "accepted"),
    "SSL_CERT_FILE of another authority": (None, {"SSL_CERT_FILE": OTHER}, "not_sent"),
    "option replaces SSL_CERT_FILE": (OTHER, {"SSL_CERT_FILE": GOOD}, "not_sent"),
    "option over SSL_CERT_FILE": (GOOD, {"SSL_CERT_FILE": OTHER}, "accepted"),
}


@pytest.mark.parametrize(("ca_path", "environment", "outcome"), TRUST.values(), ids=TRUST)
def test_which_authorities_are_trusted(certificates, https, monkeypatch, ca_path, environment, outcome):
    paths = {GOOD: certificates.ca, OTHER: certificates.other_ca, MISSING: "/missing/ca.pem",
             HASHED: certificates.hashed}
    for name, which in environment.items():
        monkeypatch.setenv(name, paths[which])
    service = https(certificates.context("good"))
    result = run_task(CREATE, base_url=service.url, **({"ca_path": paths[ca_path]} if ca_path else {}))
    assert result["outcome"] == outcome, result
    assert len(service.api.conversation) == (outcome == "accepted")


@pytest.mark.parametrize(("system", "brought"), [("ca", "other_ca"), ("other_ca", "ca")])
def test_system_and_requests_are_both_trusted(certificates, https, monkeypatch, system, brought):
    monkeypatch.setenv("SSL_CERT_FILE", getattr(certificates, system))
    monkeypatch.setattr(transport, "where", lambda: getattr(certificates, brought))
    service = https(certificates.context("good"))
    assert run_task(CREATE, base_url=service.url)["outcome"] == "accepted"
    assert run_task(CREATE, base_url=service.url, ca_path=certificates.other_ca)["outcome"] == "not_sent"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A directory where ansible.builtin.uri looks for authorities, with the context cache cleared around it."""
    monkeypatch.setattr(connecting, "places", lambda: ("/missing", str(tmp_path)))
    connecting._context.cache_clear()
    yield tmp_path
    connecting._context.cache_clear()


FOUND = {"company.pem": True, "company.crt": True, "some.cer": True, "company.txt": False, "below/company.pem": False}


@pytest.mark.parametrize(("name", "is_trusted"), [*FOUND.items()])
def test_what_uri_trusts_is_trusted(certificates, https, place, name, is_trusted):
    (place / "below").mkdir()
    (place / "0.pem").write_text("no certificate")
    (place / name).write_bytes(Path(certificates.ca).read_bytes())
    service = https(certificates.context("good"))
    assert run_task(CREATE, base_url=service.url)["outcome"] == ("accepted" if is_trusted else "not_sent")
    assert run_task(CREATE, base_url=service.url, ca_path=certificates.other_ca)["outcome"] == "not_sent"


@pytest.mark.parametrize("system", ["Linux", "FreeBSD", "OpenBSD", "NetBSD", "SunOS", "AIX", "Darwin", "Other"])
def test_the_directories_are_those_of_uri(monkeypatch, system):
    """As listed by ansible-core itself: the directories that it searches, except the one that OpenSSL knows."""
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(urls.os.path, "isdir", lambda path: False)
    looked = urls.get_ca_certs()[-1]
    own = ssl.get_default_verify_paths()
    # Before ansible-core 2.17 uri also searched the system's directory on Linux, which OpenSSL knows anyway.
    assert set(connecting.places()) == {*looked} - {own.capath, own.cafile, None, "/etc/ssl/certs"}


@pytest.mark.parametrize("bundle", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_no_bundle_turns_validation_on_again(certificates, https, monkeypatch, bundle):
    monkeypatch.setenv(bundle, certificates.other_ca)
    service = https(certificates.context("good"))
    assert run_task(CREATE, base_url=service.url, validate_certs=False)["outcome"] == "accepted"


def test_a_directory_of_hashed_names_is_trusted(certificates, https):
    service = https(certificates.context("good"))
    assert run_task(CREATE, base_url=service.url, ca_path=certificates.hashed)["outcome"] == "accepted"


UNUSABLE = {
    "missing": (lambda made: "/missing/ca.pem", "cannot be read: No such file or directory"),
    "not PEM": (lambda made: made.file("text.pem", b"no certificate"), "contains no certificate in PEM form"),
    "empty file": (lambda made: made.file("empty.pem"), "contains no certificate in PEM form"),
    "DER": (lambda made: made.file("ca.der", b"\x30\x82\x01\x00"), "contains no certificate in PEM form"),
    "directory without hashes": (lambda made: made.directory("plain", hashed=False), "openssl rehash"),
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
