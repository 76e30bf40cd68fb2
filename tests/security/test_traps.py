# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pitfalls of the libraries and the environment, each with a guard without which its test fails."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._http import transport
from faults.behaviors import answers, grants, refuses, whole
from support import CREATE, UPDATE, run_exactly, run_task
from support.service import Peer, Service

TOKEN = "token-of-the-tests"
SECRET = "s3cret-of-this-test"


@pytest.fixture
def netrc(tmp_path, monkeypatch) -> None:
    """A .netrc that has a password for every host."""
    path = tmp_path / "netrc"
    path.write_text(
        "machine 127.0.0.1 login eve password mallory\ndefault login eve password mallory\n"
    )
    path.chmod(0o600)
    monkeypatch.setenv("NETRC", str(path))


@pytest.mark.usefixtures("netrc")
def test_a_netrc_does_not_replace_the_token():
    with Service(answers()) as service:
        run_task(CREATE, base_url=service.url)
    assert [request.headers["authorization"] for request in service.received] == [f"Bearer {TOKEN}"]


@pytest.mark.usefixtures("netrc")
def test_a_netrc_does_not_add_itself_to_a_token_request():
    with Service(grants()) as endpoint:
        parameters = {"grant_type": "password", "password": SECRET}
        options = {
            "auth_url": endpoint.url,
            "auth_parameters": parameters,
            "name": "web01",
            "retries": 0,
        }
        run_exactly(CREATE, {"base_url": "http://127.0.0.1:9", **options})
    assert [request.headers.get("authorization") for request in endpoint.received] == [None]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("resource", [CREATE, UPDATE])
def test_a_redirect_carries_neither_body_nor_token_elsewhere(resource, status):
    with Service(answers()) as elsewhere:
        location = f"Location: {elsewhere.url}/?{SECRET}"
        with Service(refuses(f"{status} Moved", location)) as service:
            result = run_task(resource, base_url=service.url)
    assert (result["outcome"], result["request_attempts"], elsewhere.received) == (
        "rejected" if status in (307, 308) else "unknown",
        1,
        [],
    )
    assert "never followed" in result["msg"]
    assert SECRET not in result["msg"]


@pytest.mark.parametrize(
    ("extra", "failed"), [(0, False), (1, True)], ids=["4 MiB", "one byte more"]
)
def test_a_response_is_read_up_to_4_mib(extra, failed):
    """With its status line and its headers."""
    head = len(whole(b"x" * 4_000_000)) - 4_000_000
    body = b'{"a": "%s"}' % (b"x" * (4 * 1024 * 1024 - head - 9 + extra))
    assert len(whole(body)) == 4 * 1024 * 1024 + extra
    with Service(answers(whole(body))) as service:
        result = run_task(CREATE, base_url=service.url)
    assert (result.get("failed", False), result["outcome"]) == (failed, "accepted")


def test_compression_is_not_requested_but_accepted():
    squeezed = whole(gzip.compress(b'{"id": "1"}'), "Content-Encoding: gzip")
    with Service(answers(squeezed)) as service:
        result = run_task(CREATE, base_url=service.url)
    assert service.received[0].headers["accept-encoding"] == "identity"
    assert ("failed" in result, result["outcome"]) == (False, "accepted")
    assert result["asset"] == {"id": "1"}


# options, and how the message starts; a library would send these, or show them in the text of its
# exception.
CONTROL = {
    "token, line break": ({"access_token": f"{SECRET}\r\nX-Evil: 1"}, "access_token: contains"),
    "token, NUL": ({"access_token": f"{SECRET}\0"}, "access_token: contains"),
    "token, space": ({"access_token": f"{SECRET} x"}, "access_token: contains"),
    "token, beyond ASCII": ({"access_token": f"{SECRET}\u00e9"}, "access_token: contains"),
    "token, empty": ({"access_token": ""}, "access_token: is empty"),
    "agent, line break": ({"http_agent": "a\r\nX-Evil: 1"}, "http_agent: contains"),
    "agent, beyond ASCII": ({"http_agent": "\u2603"}, "http_agent: contains"),
    "address, line break": ({"base_url": "http://127.0.0.1/\r\nX-Evil: 1"}, "base_url: contains"),
    "address, space": ({"base_url": "http://127.0.0.1/ a"}, "base_url: contains"),
    "address, user": (
        {"base_url": f"http://eve:{SECRET}@127.0.0.1"},
        "base_url: contains a user name",
    ),
    "address, user, bad port": (
        {"base_url": f"http://eve:{SECRET}@127.0.0.1:x"},
        "base_url: contains a user name",
    ),
    "address, query": (
        {"base_url": f"http://127.0.0.1/?k={SECRET}"},
        "base_url: must not have a query",
    ),
    "address, long label": ({"base_url": f"https://{'a' * 70}.example"}, "base_url: names a host"),
    "address, other scheme": (
        {"base_url": "file:///etc/passwd"},
        "base_url: is not an absolute URL",
    ),
}


@pytest.mark.parametrize(("options", "why"), CONTROL.values(), ids=CONTROL)
def test_values_that_a_library_would_send_or_show_are_refused(options, why):
    with Service(answers()) as service:
        result = run_task(CREATE, **{"base_url": service.url, **options})
    assert (result["failed"], result["outcome"], service.bytes_read) == (True, "not_sent", 0)
    assert result["msg"].startswith(why)
    assert SECRET not in str(result)


IDS = {
    "../x": "..%2Fx",
    "%2e%2e": "%252e%252e",
    "a/b": "a%2Fb",
    "a?b#c": "a%3Fb%23c",
    "\u00e9": "%C3%A9",
    "...": "...",
}


@pytest.mark.parametrize(("identifier", "segment"), IDS.items())
def test_an_id_stays_one_segment(identifier, segment):
    with Service(answers()) as service:
        run_task(UPDATE, base_url=f"{service.url}/prefix", id=identifier)
    (request,) = service.received
    assert request.path == f"/prefix/api/v1/services/cassandra/application_roles/{segment}"


@pytest.mark.parametrize("identifier", ["", ".", "..", "a\nb", "a\0b"])
def test_an_id_that_cannot_be_a_segment_is_refused(identifier):
    with Service(answers()) as service:
        result = run_task(UPDATE, base_url=service.url, id=identifier)
    assert (result["outcome"], service.bytes_read) == ("not_sent", 0)
    assert result["msg"].startswith("id: ")


def creates(service: Service, count: int, between: Callable[[], None] = lambda: None) -> list[str]:
    """Create machines over one transport; return the outcome of each."""
    kept: list[transport.Transport] = []

    def connect(settings) -> transport.Transport:
        kept[:] = kept or [transport.Transport(settings)]
        return kept[0]

    outcomes = []
    for number in range(count):
        outcomes.append(
            run_task(CREATE, base_url=service.url, name=f"vm{number}", connect=connect)["outcome"]
        )
        between()
    kept[0].close()
    return outcomes


def test_a_kept_connection_that_the_service_closes_creates_each_machine_once():
    """The end of the first connection has time to arrive; after that none is reused, so timing does
    not matter.
    """
    pauses = iter([0.2])
    with Service(answers(whole, Peer.fin)) as service:
        assert creates(service, 50, lambda: time.sleep(next(pauses, 0))) == ["accepted"] * 50
    assert [json.loads(request.body)["name"] for request in service.done] == [
        f"vm{number}" for number in range(50)
    ]


def test_no_connection_is_reused_once_the_service_has_closed_one_unannounced():
    """The next end of stream might arrive during a request, which would then be lost."""
    peers: list[Peer] = []

    def script(peer: Peer) -> bool:
        if peer not in peers:
            peers.append(peer)
        return answers(whole, *[Peer.fin][len(peers) - 1 :])(peer)

    with Service(script) as service:
        assert creates(service, 4, lambda: time.sleep(0.05)) == ["accepted"] * 4
    assert len(peers) == 4


def test_a_kept_connection_is_reused_until_it_has_been_idle_for_too_long(monkeypatch):
    peers: set[Peer] = set()

    def script(peer: Peer) -> bool:
        peers.add(peer)
        return answers()(peer)

    with Service(script) as service:
        assert creates(service, 3) == ["accepted"] * 3
        assert len(peers) == 1
        monkeypatch.setattr(transport, "MAX_IDLE", -1.0)
        creates(service, 3)
        assert len(peers) == 4


def test_data_after_an_answer_is_not_taken_for_the_next_one():
    smuggled = whole(b'{"id": "smuggled", "name": "smuggled"}')
    with Service(answers(lambda envelope: whole(envelope) + smuggled)) as service:
        assert creates(service, 5) == ["accepted"] * 5
    assert len(service.done) == 5
