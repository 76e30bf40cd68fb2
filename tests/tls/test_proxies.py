"""Through real proxies (proxy.py): http and https services, with and without credentials, and with
TLS to the proxy.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pytest
from faults.behaviors import answers
from support import CREATE, run_task
from support.service import Service

from .conftest import BEHIND_PROXY

USER, PASSWORD = "user", "p:a/s%'\""
CREDENTIALS = f"{USER}:{quote(PASSWORD, safe='')}@"


class Proxy(NamedTuple):
    """A running proxy: where it listens and what it logged."""

    port: int
    log: Path

    def lines(self, above: int = -1) -> int:
        """Return the number of lines logged; the log lags behind, so wait a moment for more than
        `above`.
        """
        for dummy in range(100):
            lines = self.log.read_text().count("access_log")
            if lines > above:
                break
            time.sleep(0.02)
        return lines


@pytest.fixture(scope="module")
def start_proxy(tmp_path_factory) -> Iterator[Callable[..., Proxy]]:
    """Start a proxy with these arguments; all of them stop with the module."""
    with ExitStack() as stack:

        def start(*arguments: str) -> Proxy:
            directory = tmp_path_factory.mktemp("proxy")
            port, log = directory / "port", directory / "log"
            command = [sys.executable, "-m", "proxy", "--hostname", "127.0.0.1"]
            command += ["--num-workers", "1", "--num-acceptors", "1"]
            files = {"--port-file": port, "--data-dir": directory, "--log-file": log}
            command += ["--port", "0", *(str(word) for pair in files.items() for word in pair)]
            process = stack.enter_context(
                subprocess.Popen([*command, *arguments], stdout=subprocess.DEVNULL)
            )
            stack.callback(process.terminate)
            for dummy in range(500):
                if (port.exists() and port.read_text()) or process.poll() is not None:
                    break
                time.sleep(0.02)
            return Proxy(int(port.read_text()), log)

        yield start


@pytest.fixture(scope="module")
def proxies(start_proxy, certificates) -> dict[str, Proxy]:
    """The proxies: an open one, one with credentials, one that is reached over TLS."""
    tls = certificates.server_files("good")
    return {
        "open": start_proxy(),
        "closed": start_proxy("--basic-auth", f"{USER}:{PASSWORD}"),
        "tls": start_proxy("--cert-file", tls[0], "--key-file", tls[1]),
    }


@pytest.fixture
def https() -> Iterator[Callable[..., Service]]:
    """Start a service behind a TLS context (None: plain HTTP), as often as a test needs."""
    with ExitStack() as stack:
        yield lambda context: stack.enter_context(Service(answers(), tls=context))


HTTP, HTTPS = "http", "https"


def create(service, ca_path: str, **options) -> dict:
    """Create a machine by an address of the service that is not called loopback."""
    url = service.url.replace("127.0.0.1", BEHIND_PROXY)
    return run_task(CREATE, base_url=url, allow_http=True, ca_path=ca_path, **options)


REQUIRED = "requires credentials"
# proxy, credentials in its URL, service: outcome, part of the message.
WAYS = {
    "http": ("open", "", HTTP, "accepted", ""),
    "https": ("open", "", HTTPS, "accepted", ""),
    "http with credentials": ("closed", CREDENTIALS, HTTP, "accepted", ""),
    "https with credentials": ("closed", CREDENTIALS, HTTPS, "accepted", ""),
    "http without credentials": ("closed", "", HTTP, "rejected", f"407: the proxy {REQUIRED}"),
    "https without credentials": ("closed", "", HTTPS, "not_sent", f"407: it {REQUIRED};"),
    "http over TLS": ("tls", "", HTTP, "accepted", ""),
    "https over TLS": ("tls", "", HTTPS, "accepted", ""),
}


@pytest.mark.parametrize("way", WAYS)
def test_requests_go_through_the_proxy(proxies, certificates, https, monkeypatch, way):
    name, credentials, scheme, outcome, why = WAYS[way]
    service = https(certificates.context("good") if scheme == HTTPS else None)
    proxy, seen = proxies[name], proxies[name].lines()
    monkeypatch.setenv(
        f"{scheme}_proxy",
        f"{'https' if name == 'tls' else 'http'}://{credentials}127.0.0.1:{proxy.port}",
    )
    result = create(service, certificates.ca, retries=0)
    assert result["outcome"] == outcome, result
    assert why in result.get("msg", "")
    assert proxy.lines(above=seen) > seen, "the request bypassed the proxy"
    assert len(service.received) == (outcome == "accepted")
    for secret in (PASSWORD, quote(PASSWORD, safe="")):
        assert secret not in str(result)


# environment, options: the proxy is bypassed.
PAST = {
    "use_proxy false": ({}, {"use_proxy": False}),
    "NO_PROXY address": ({"NO_PROXY": BEHIND_PROXY}, {}),
    "no_proxy network": ({"no_proxy": f"{BEHIND_PROXY}/8"}, {}),
}


@pytest.mark.parametrize("scheme", [HTTP, HTTPS])
@pytest.mark.parametrize(("environment", "options"), PAST.values(), ids=PAST)
def test_requests_bypass_the_proxy(certificates, https, monkeypatch, environment, options, scheme):
    service = https(certificates.context("good") if scheme == HTTPS else None)
    with Service(lambda peer: None) as proxy:
        for variable, value in {
            "HTTP_PROXY": proxy.url,
            "HTTPS_PROXY": proxy.url,
            **environment,
        }.items():
            monkeypatch.setenv(variable, value)
        result = create(service, certificates.ca, retries=0, **options)
    assert (result["outcome"], proxy.bytes_read) == ("accepted", 0)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
@pytest.mark.parametrize("scheme", [HTTP, HTTPS])
def test_a_loopback_host_is_never_reached_through_a_proxy(
    certificates, https, monkeypatch, scheme, host
):
    service = https(certificates.context("good") if scheme == HTTPS else None)
    with Service(lambda peer: None) as proxy:
        for variable in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(variable, proxy.url)
        url = service.url.replace("127.0.0.1", host)
        result = run_task(CREATE, base_url=url, ca_path=certificates.ca, retries=0)
    assert (result["outcome"], proxy.connections) == ("accepted", 0)


UNUSABLE = "requests cannot use this URL, or the proxy that the environment names"
DEAD = "no connection: Connection refused (127.0.0.1:9, the proxy that the environment names)"
# the proxy's URL: attempts with one retry, part of the message; nothing is sent.
USELESS = {
    "dead": ("http://user:s3cret@127.0.0.1:9", 2, DEAD),
    "socks": ("socks5://user:s3cret@127.0.0.1:9", 1, UNUSABLE),
    "port": ("http://user:s3cret@127.0.0.1:99999", 1, UNUSABLE),
    "unknown name": ("http://user:s3cret@proxy.invalid:80", None, "(proxy.invalid:80, the proxy "),
}


@pytest.mark.parametrize("scheme", [HTTP, HTTPS])
@pytest.mark.parametrize(("url", "attempts", "why"), USELESS.values(), ids=USELESS)
def test_a_proxy_that_cannot_be_used(certificates, https, monkeypatch, url, attempts, why, scheme):
    service = https(certificates.context("good") if scheme == HTTPS else None)
    monkeypatch.setenv(f"{scheme}_proxy", url)
    result = create(service, certificates.ca, retries=1)
    assert (result["failed"], result["outcome"]) == (True, "not_sent")
    assert attempts is None or result["request_attempts"] == attempts
    assert why in result["msg"]
    assert "s3cret" not in str(result)
    assert service.received == []


def test_connect_reveals_nothing_of_the_request(certificates, monkeypatch):
    with Service(lambda peer: peer.request() and None) as proxy:
        monkeypatch.setenv("https_proxy", f"http://{CREDENTIALS}127.0.0.1:{proxy.port}")
        run_task(CREATE, base_url="https://service.example/prefix", retries=0)
    (connect,) = proxy.received
    assert (connect.method, connect.path) == ("CONNECT", "service.example:443")
    assert "authorization" not in connect.headers
    assert connect.headers["proxy-authorization"].startswith("Basic ")
    assert "token-of-the-tests" not in str(connect)


def test_proxy_credentials_are_not_sent_to_the_service(proxies, certificates, https, monkeypatch):
    service = https(certificates.context("good"))
    monkeypatch.setenv("https_proxy", f"http://{CREDENTIALS}127.0.0.1:{proxies['closed'].port}")
    create(service, certificates.ca)
    (request,) = service.received
    assert "proxy-authorization" not in request.headers


def test_a_certificate_is_checked_through_a_proxy_too(proxies, certificates, https, monkeypatch):
    service = https(certificates.context("wrong host"))
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxies['open'].port}")
    result = create(service, certificates.ca)
    assert (result["outcome"], result["request_attempts"]) == ("not_sent", 1)
    assert "not valid for" in result["msg"]


def test_the_certificate_of_a_proxy_is_checked(proxies, certificates, https, monkeypatch):
    service = https(None)
    monkeypatch.setenv("http_proxy", f"https://127.0.0.1:{proxies['tls'].port}")
    result = create(service, certificates.other_ca)
    assert (result["outcome"], result["request_attempts"]) == ("not_sent", 1)
    assert "the certificate was not accepted" in result["msg"]
