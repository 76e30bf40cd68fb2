"""URLs and path segments: which are accepted, and that the host that is checked is the host
contacted.
"""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import InvalidInput
from ansible_collections.infrastructure.services.plugins.module_utils._http.urls import (
    canonical_url,
    checked_url,
)
from hypothesis import example, given
from hypothesis import strategies as st
from urllib3.exceptions import LocationParseError
from urllib3.util import parse_url


@pytest.mark.parametrize(
    "url",
    [
        "https://service.example:8443/a/b/",
        "https://service.example/a%20b/~c",
        "HTTPS://SERVICE.example.",
        "https://[2001:db8::1]:8443",
        "http://127.0.0.1:8080",
        "http://localhost",
        "http://[::1]:80",
    ],
)
def test_a_valid_url_is_accepted_unchanged(url):
    assert checked_url("base_url", url, allow_http=False) == url


REFUSED = [
    "",
    "service.example",
    "ftp://service.example",
    "https://",
    "https://service.example?a=b",
    "https://service.example#a",
    "https://user@service.example",
    "https://user:secret@service.example",
    "https://service.example/a b",
    " https://service.example",
    "https://service.example\n",
    "https://service.example\\@x",
    "https://sërvice.example",
    "https://service.example/\x00",
    "https://service.example/\ud800",
    "https://service.example:99999",
    "https://[::1",
    "http://[::1]]",
    "https://[::1]x",
    "https://[abc]",
    "https://%6cocalhost",
    "http://service.example",
    "http://127.0.0.1.example",
    "http://localhost.example",
]


@pytest.mark.parametrize("url", REFUSED)
def test_an_invalid_url_is_refused_without_quoting_it(url):
    with pytest.raises(InvalidInput, match=r"^base_url: ") as refused:
        checked_url("base_url", url, allow_http=False)
    assert "secret" not in refused.value.msg.replace("would send secrets", "")


def test_allow_http_allows_http_and_nothing_else():
    assert checked_url("base_url", "http://service.example", allow_http=True)
    with pytest.raises(InvalidInput):
        checked_url("base_url", "ftp://service.example", allow_http=True)


HOSTS = st.from_regex(
    r"[a-z0-9.]{0,5}([\-._~%!$&'()*+,;=\[\]:@/?#\\][a-z0-9.]{0,5}){0,3}", fullmatch=True
)


@given(st.text() | HOSTS.map("https://{}".format) | HOSTS.map("http://127.0.0.1{}".format))
@example("https://good.example\\@evil.example")
@example("https://good.example%2f@evil.example")
@example("http://127.0.0.1#@evil.example")
def test_the_host_that_is_checked_is_the_host_contacted(url):
    """The checked host is the one that urllib3 connects to; so plain http stays on the loopback
    interface.
    """
    try:
        checked_url("base_url", url, allow_http=False)
        called = parse_url(url)
    except (InvalidInput, LocationParseError):  # no host is contacted
        return
    assert called.auth is None
    assert called.host.strip("[]") == urlsplit(url).hostname
    assert (
        called.scheme == "https"
        or called.host in ("localhost", "[::1]")
        or called.host.startswith("127.")
    )


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("https://service.example", "https://service.example"),
        ("HTTPS://Service.Example:443/", "https://service.example"),
        ("http://127.0.0.1:80/a/B//", "http://127.0.0.1/a/B"),
        ("https://service.example:80", "https://service.example:80"),
        ("https://[2001:DB8::1]:443/a", "https://[2001:db8::1]/a"),
        ("https://[2001:db8:0:0::1]", "https://[2001:db8::1]"),
        ("https://service.example./a", "https://service.example/a"),
    ],
)
def test_urls_of_one_service_have_one_canonical_form(url, canonical):
    assert canonical_url(url) == canonical_url(canonical) == canonical
