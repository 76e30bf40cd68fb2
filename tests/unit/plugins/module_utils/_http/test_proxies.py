# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which proxy a URL gets from the environment, and that nothing but the environment is consulted."""

from __future__ import annotations

import os
import socket
import urllib.request

import pytest
import requests.utils
from ansible_collections.infrastructure.services.plugins.module_utils._http.urls import (
    named_in_environment,
)

ONE, TWO = "http://one:1", "http://two:2"
HTTP, HTTPS = "http://service.example/a", "https://service.example/a"

# environment, URL: the proxy.
NAMED = {
    "nothing": ({}, HTTP, ""),
    "HTTP_PROXY": ({"HTTP_PROXY": ONE}, HTTP, ONE),
    "http_proxy": ({"http_proxy": ONE}, HTTP, ONE),
    "lower case first": ({"http_proxy": ONE, "HTTP_PROXY": TWO}, HTTP, ONE),
    "without scheme": ({"http_proxy": "one:1"}, HTTP, ONE),
    "lower case empty": ({"http_proxy": "", "HTTP_PROXY": TWO}, HTTP, ""),
    "spaces around": ({"http_proxy": f" {ONE} "}, HTTP, ONE),
    "another scheme": ({"HTTP_PROXY": ONE}, HTTPS, ""),
    "HTTPS_PROXY": ({"HTTPS_PROXY": ONE, "HTTP_PROXY": TWO}, HTTPS, ONE),
    "ALL_PROXY": ({"ALL_PROXY": ONE}, HTTPS, ONE),
    "ALL_PROXY last": ({"all_proxy": ONE, "HTTPS_PROXY": TWO}, HTTPS, TWO),
    "CGI": ({"HTTP_PROXY": ONE, "REQUEST_METHOD": "GET"}, HTTP, ""),
    "CGI, lower case": ({"HTTP_PROXY": ONE, "http_proxy": TWO, "REQUEST_METHOD": "GET"}, HTTP, TWO),
    "CGI, https": ({"HTTPS_PROXY": ONE, "REQUEST_METHOD": "GET"}, HTTPS, ONE),
}


@pytest.fixture
def named_in(monkeypatch):
    """Return the proxies that this environment names."""

    def named(environment):
        for name in [*os.environ]:
            monkeypatch.delenv(name)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        return named_in_environment()

    return named


@pytest.mark.parametrize(("environment", "url", "expected"), NAMED.values(), ids=NAMED)
def test_the_proxy_of_a_url(named_in, environment, url, expected):
    assert named_in(environment).for_url(url) == expected


# NO_PROXY, host in the URL: whether the proxy is bypassed.
PASSED_BY = [
    ("*", "any.example", True),
    ("service.example", "service.example", True),
    ("SERVICE.example", "Service.EXAMPLE", True),
    ("service.example", "service.example.", True),
    ("service.example", "a.service.example", True),
    (".service.example", "a.service.example", True),
    (".service.example", "service.example", True),
    ("*.service.example", "a.service.example", True),
    ("example", "service.example", True),
    ("service.example", "notservice.example", False),
    ("service.example", "service.example.org", False),
    ("a.service.example", "service.example", False),
    ("service.example:8443", "service.example:8443", True),
    ("service.example:8443", "service.example", False),
    ("service.example:443", "service.example", True),
    ("other, service.example", "service.example", True),
    ("other service.example", "service.example", True),
    ("other,,", "service.example", False),
    (".", "service.example", False),
    ("192.0.2.1", "192.0.2.1", True),
    ("192.0.2.1:8443", "192.0.2.1:8443", True),
    ("192.0.2.1:8443", "192.0.2.1", False),
    ("192.0.2.0/24", "192.0.2.77", True),
    ("192.0.2.0/24", "192.0.3.77", False),
    ("192.0.2.7/24", "192.0.2.77", True),
    ("192.0.2.0/24", "service.example", False),
    ("2001:db8::1", "[2001:db8::1]", True),
    ("[2001:db8::1]", "[2001:db8::1]", True),
    ("[2001:db8::1]:8443", "[2001:db8::1]:8443", True),
    ("[2001:db8::1]:8443", "[2001:db8::1]", False),
    ("2001:db8::443", "[2001:db8::443]", True),
    ("2001:db8::443", "[2001:db8::443]:8443", True),
    ("2001:db8::1:443", "[2001:db8::1:443]", True),
    ("2001:db8::1:443", "[2001:db8::1]:443", True),  # requests reads it as a port
    ("2001:db8::/32", "[2001:db8::1]", True),
    ("2001:db8::/32", "192.0.2.1", False),
    ("0.0.0.0/0", "[2001:db8::1]", False),
]


@pytest.mark.parametrize(("entries", "host", "passed_by"), PASSED_BY)
@pytest.mark.parametrize("variable", ["NO_PROXY", "no_proxy"])
def test_no_proxy(named_in, variable, entries, host, passed_by):
    proxies = named_in({"HTTPS_PROXY": ONE, variable: entries})
    assert (proxies.for_url(f"https://{host}/a") == "") is passed_by


@pytest.mark.parametrize(("entries", "host", "passed_by"), PASSED_BY)
def test_whatever_bypasses_the_proxy_in_requests_bypasses_it_here(
    entries, host, passed_by, monkeypatch
):
    monkeypatch.setenv("no_proxy", entries)
    if requests.utils.should_bypass_proxies(f"https://{host}/a", None):
        assert passed_by or (entries, host) == ("service.example", "notservice.example")


def test_only_the_environment_is_consulted(named_in, monkeypatch):
    """requests and urllib consult system frameworks on macOS, and the name service on Windows."""
    for module, names in (
        (urllib.request, ("getproxies", "proxy_bypass")),
        (requests.utils, ("getproxies", "proxy_bypass")),
        (socket, ("getaddrinfo", "gethostbyname")),
    ):
        for name in names:
            monkeypatch.setattr(module, name, None)
    assert named_in({"HTTP_PROXY": ONE, "NO_PROXY": "a"}).for_url(HTTP) == ONE


def test_proxies_of_different_environments_are_different_keys(named_in):
    one, same, other = (named_in({"HTTP_PROXY": url, "NO_PROXY": "a,b"}) for url in (ONE, ONE, TWO))
    assert len({one, same, other}) == 2
