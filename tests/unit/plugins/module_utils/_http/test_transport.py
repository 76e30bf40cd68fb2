# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One attempt over a real socket: the bytes that were sent, and how the bytes that came back are
read.
"""

from __future__ import annotations

import gzip
import http.client
import logging
import platform
import socket
import ssl
import sys
import time
import zlib
from types import SimpleNamespace

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    AttemptFailed,
    MissingLibrary,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http import (
    connections,
    exchange,
    sockets,
    tls_context,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http import (
    transport as transport_module,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http.exchange import Request
from ansible_collections.infrastructure.services.plugins.module_utils._http.tls_context import (
    ConnectionSettings,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http.transport import (
    Transport,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http.urls import Proxies
from requests.utils import DEFAULT_CA_BUNDLE_PATH
from support.wire import Last, answer, running, serving
from urllib3.connection import HTTPSConnection

OK = b"HTTP/1.1 200 OK\r\n"
GZIP, BOMB = (gzip.compress(plain, mtime=0) for plain in (b"{}", bytes(20 << 20)))
RAW = zlib.compress(b"{}")[2:-4]  # without header and checksum


def transport(**settings) -> Transport:
    return Transport(ConnectionSettings(**settings))


def request(url: str) -> Request:
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "agent/1",
        "Authorization": "Bearer t",
    }
    return Request("POST", f"{url}/a", headers, b'{"b":1}')


def attempt(*answers: bytes, times: int = 1, **settings):
    """Make attempts at one server; return the last answer and the server."""
    with serving(*answers) as wire:
        sender = transport(**settings)
        try:
            for _number in range(times):
                got = sender.send_once(request(wire.url), 5)
        finally:
            sender.close()
        return got, wire


def test_a_transport_knows_whether_its_last_attempt_sent_anything():
    sender = transport()
    with serving(answer(200, {})) as wire:
        sender.send_once(request(wire.url), 5)
        assert sender.has_sent is True
    with pytest.raises(AttemptFailed):
        sender.send_once(request(wire.url.replace("127.0.0.1", "127.0.0.2")), 5)
    assert sender.has_sent is False
    sender.close()


def test_exactly_the_given_request_is_sent():
    got, wire = attempt(answer(201, {"c": 2}, "X-Request-Id: r1"))
    (sent,) = wire.sent
    assert sent.line == "POST /a HTTP/1.1"
    assert sorted(sent.headers) == [
        ("Accept-Encoding", "identity"),
        ("Authorization", "Bearer t"),
        ("Content-Length", "7"),
        ("Content-Type", "application/json"),
        ("Host", wire.url.removeprefix("http://")),
        ("User-Agent", "agent/1"),
    ]
    assert sent.body == b'{"b":1}'
    assert (got.status, got.headers["x-request-id"], got.body) == (201, "r1", b'{"c": 2}')
    assert (got.problem, got.cut) == ("", False)


WHOLE = [
    (OK + b"Content-Length: 2\r\n\r\n{}", b"{}"),
    (OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n", b"{}"),
    (OK + b"Content-Encoding: identity\r\nContent-Length: 2\r\n\r\n{}", b"{}"),
    (b"HTTP/1.1 204 -\r\n\r\n", b""),
    *(
        (
            b"HTTP/1.1 %d -\r\nLink: </a>\r\n\r\n" % status * 2
            + OK
            + b"Content-Length: 2\r\n\r\n{}",
            b"{}",
        )
        for status in (100, 102, 103)
    ),
    (OK + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", b"{}"),
    (OK + b"Content-Length: 2, 2\r\n\r\n{}", b"{}"),
    (OK + b"Content-Length: " + b"0" * 5000 + b"2\r\n\r\n{}", b"{}"),
    *(
        (
            OK + b"Content-Encoding: %s\r\nContent-Length: %d\r\n\r\n" % (coding, len(body)) + body,
            b"{}",
        )
        for coding, body in (
            (b"gzip", GZIP),
            (b"X-GZIP", GZIP),
            (b"deflate", zlib.compress(b"{}")),
            (b"deflate", RAW),
        )
    ),
    (OK + b"Content-Encoding: gzip\r\nContent-Length: 0\r\n\r\n", b""),
]


@pytest.mark.parametrize(("said", "body"), WHOLE)
def test_a_complete_answer_is_read(said, body):
    got, _wire = attempt(said)
    assert (got.body, got.problem, got.cut) == (body, "", False)


UNUSABLE = [
    (OK + b"Content-Length: 3\r\n\r\n{}", "the connection ended too early", True),
    (OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", "the connection ended too early", True),
    (OK + b"Content-Length: -2\r\n\r\n{}", "its Content-Length is not a number", False),
    (OK + b"Content-Length: ten\r\n\r\n{}", "its Content-Length is not a number", False),
    (
        OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        "both a Content-Length and a Transfer",
        False,
    ),
    (OK + b"Transfer-Encoding: gzip\r\n\r\n{}", "its Transfer-Encoding is unknown", False),
    *(
        (
            OK + b"Transfer-Encoding: chunked\r\n\r\n" + said + b"\r\n{}" * 2,
            "its chunks are malformed",
            True,
        )
        for said in (b"-5", b"-1", b"zz", b"", b"f" * 70_000)
    ),
    (
        OK + b"Content-Length: " + b"9" * 5001 + b"\r\n\r\n{}",
        "it is longer than 4194304 bytes",
        False,
    ),
    (OK + b"Content-Length: 4194305\r\n\r\n{}", "it is longer than 4194304 bytes", False),
    (OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "it has two Content-Lengths", False),
    (OK + b"Content-Length: 2, 3\r\n\r\n{}", "it has two Content-Lengths", False),
    (
        OK + b"Content-Length: 2\r\nContent-Length: +2\r\n\r\n{}",
        "its Content-Length is not a number",
        False,
    ),
    (
        OK + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
        "it is not compressed as its headers say",
        False,
    ),
    (
        OK + b"Content-Encoding: br\r\nContent-Length: 2\r\n\r\n{}",
        "compressed in a way that was not asked",
        False,
    ),
    (
        OK + b"Content-Encoding: gzip, gzip\r\nContent-Length: 2\r\n\r\n{}",
        "compressed in a way that",
        False,
    ),
    (
        OK + b"Content-Encoding: gzip\r\nContent-Length: 20\r\n\r\n" + GZIP[:20],
        "data is cut off",
        False,
    ),
    (OK + b"Content-Encoding: gzip\r\n\r\n" + GZIP[:20], "data is cut off", True),
    *(
        (
            OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body) + body,
            "there is more after",
            False,
        )
        for body in (GZIP + GZIP, GZIP + b"\0more")
    ),
    (
        OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % (2 * len(BOMB)) + BOMB * 2,
        "longer than",
        False,
    ),
    (
        OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB) + BOMB,
        "longer than 4194304",
        False,
    ),
]


@pytest.mark.parametrize(("said", "problem", "cut"), UNUSABLE)
def test_an_unreliable_answer_says_why(said, problem, cut):
    got, _wire = attempt(Last(said))
    assert problem in got.problem
    assert (got.status, got.body, got.cut) == (200, b"", cut)


def test_a_body_that_ends_with_the_connection_may_have_been_cut():
    got, _wire = attempt(Last(OK + b"\r\n{}"))
    assert (got.body, got.problem, got.cut) == (b"{}", "", True)


CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
HEAD = OK + b"Content-Length: %07d\r\n\r\n"


def repeated(before: bytes, after: bytes, size: int) -> bytes:
    """Return `size` bytes: pieces of 1,000 bytes, the first one longer, that begin and end like
    this.
    """
    times, rest = divmod(size, 1000)
    sizes = [1000 + rest, *[1000] * (times - 1)]
    return b"".join(before + b"a" * (each - len(before + after)) + after for each in sizes)


def long_body(size: int) -> bytes:
    length = size - len(HEAD % 0)
    return HEAD % length + b"a" * length


def long_chunks(size: int) -> bytes:
    end = b"0\r\n\r\n"
    return CHUNKED + repeated(b"1;", b"\r\na\r\n", size - len(CHUNKED + end)) + end


def long_trailers(size: int) -> bytes:
    before, end = CHUNKED + b"1\r\na\r\n0\r\n", b"\r\n"
    return before + repeated(b"X: ", b"\r\n", size - len(before + end)) + end


def long_interim_answers(size: int) -> bytes:
    end = HEAD % 1 + b"a"
    return repeated(b"HTTP/1.1 100 -\r\nX: ", b"\r\n\r\n", size - len(end)) + end


@pytest.mark.parametrize("make", [long_body, long_chunks, long_trailers, long_interim_answers])
def test_an_answer_is_read_up_to_a_limit_that_counts_every_byte(make):
    got, _wire = attempt(make(exchange.MAX_ANSWER))
    assert (got.status, got.problem, got.cut) == (200, "", False)


@pytest.mark.parametrize("make", [long_body, long_chunks, long_trailers])
def test_a_body_beyond_the_limit_cannot_be_used(make):
    got, _wire = attempt(make(exchange.MAX_ANSWER + 1))
    assert (got.status, got.problem, got.cut, got.body) == (
        200,
        "it is longer than 4194304 bytes",
        False,
        b"",
    )


def test_headers_beyond_the_limit_are_not_an_answer():
    says = "4194304 bytes arrived without the end of a header block"
    with pytest.raises(AttemptFailed, match=says) as failed:
        attempt(long_interim_answers(exchange.MAX_ANSWER + 10_000))
    assert (failed.value.sent, failed.value.outcome) == (True, "unknown")


@pytest.mark.parametrize(
    "said",
    [
        long_body(exchange.MAX_ANSWER + 1),
        CHUNKED + b"-1\r\n",
        CHUNKED + b"-5\r\n{}",
        CHUNKED + b"zz\r\n",
        OK + b"Content-Length: " + b"9" * 5001 + b"\r\n\r\n{}",
        OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
    ],
)
def test_after_an_answer_that_is_malformed_or_too_long_its_connection_is_closed(said):
    """The server sees the end of it, and the next request uses another one."""
    with running(lambda sent: said if sent.connection == 1 else answer(200, {})) as wire:
        sender = transport()
        first = sender.send_once(request(wire.url), 5)
        while len(wire._open) > 0:  # the server's side of the connection
            time.sleep(0.001)
        second = sender.send_once(request(wire.url), 5)
        sender.close()
    assert (first.status, bool(first.problem), second.problem) == (200, True, "")
    assert [sent.connection for sent in wire.sent] == [1, 2]


def test_an_answer_with_two_lengths_keeps_its_headers():
    got, _wire = attempt(OK + b"Location: /a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}")
    assert (got.status, got.headers["location"], got.problem) == (
        200,
        "/a",
        "it has two Content-Lengths",
    )


@pytest.mark.parametrize("status", [204, 304])
def test_an_answer_that_can_have_no_body_has_none(status):
    head = b"HTTP/1.1 %d -\r\nTransfer-Encoding: chunked\r\n\r\n" % status
    got, wire = attempt(head + b"-5\r\n", answer(200, {}), times=2)
    assert (got.body, [sent.connection for sent in wire.sent]) == (b"{}", [1, 2])


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"HTTP/1.1 2",
        OK,
        OK + b"Content-Ty",
        OK + b"Content-Length: 2\r\n",
        b"\x16\x03\x01 not HTTP\r\n\r\n",
    ],
)
def test_a_request_lost_after_it_was_sent_counts_as_sent(said):
    with pytest.raises(AttemptFailed) as failed:
        attempt(Last(said))
    assert (failed.value.sent, failed.value.hopeless, failed.value.outcome) == (
        True,
        False,
        "unknown",
    )


def test_a_redirect_is_not_followed():
    got, wire = attempt(answer(307, None, "Location: /elsewhere"))
    assert (got.status, len(wire.sent)) == (307, 1)


def test_a_connection_is_kept_alive():
    _got, wire = attempt(*[answer(200, {})] * 3, times=3)
    assert [sent.connection for sent in wire.sent] == [1, 1, 1]


EMPTY = answer(422)
CLOSING = Last(answer(200, {}, "Connection: close"))
SWITCHING = b"HTTP/1.1 101 Switching Protocols\r\n\r\n"


@pytest.mark.parametrize(
    ("answers", "connections"),
    [
        ([EMPTY] * 3, [1, 1, 1]),
        ([b"HTTP/1.1 204 -\r\n\r\n"] * 3, [1, 1, 1]),
        ([CLOSING, *[answer(200, {})] * 2, CLOSING, EMPTY, EMPTY], [1, 2, 2, 2, 3, 3]),
        ([SWITCHING, EMPTY, EMPTY], [1, 2, 2]),
    ],
)
def test_a_connection_is_used_for_as_long_as_the_answers_allow(answers, connections):
    """An answer without a body leaves it open, and one closed on purpose says nothing about the
    next.
    """
    _got, wire = attempt(*answers, times=len(answers))
    assert [sent.connection for sent in wire.sent] == connections


def test_a_connection_that_was_idle_too_long_is_not_reused(monkeypatch):
    monkeypatch.setattr(transport_module, "MAX_IDLE", -1)
    _got, wire = attempt(*[answer(200, {})] * 2, times=2)
    assert [sent.connection for sent in wire.sent] == [1, 2]


def test_after_a_pause_a_new_connection_is_kept_alive_as_the_first_one_was(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(transport_module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    with serving(*[answer(200, {})] * 6) as wire:
        sender = transport()
        for pause in (0, 1, 4, 1, 4, 1):
            clock[0] += pause
            sender.send_once(request(wire.url), 5)
        sender.close()
    assert [sent.connection for sent in wire.sent] == [1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(
    "first", [Last(answer(200, {}, "Connection: close")), UNUSABLE[2][0], UNUSABLE[4][0]]
)
def test_an_unreliable_connection_is_not_reused(first):
    _got, wire = attempt(first, answer(200, {}), times=2)
    assert [sent.connection for sent in wire.sent] == [1, 2]


def test_a_refused_connection_sent_nothing():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but not listening
        with pytest.raises(
            AttemptFailed, match=r"no connection: .*refused \(127\.0\.0\.1 port \d+\)"
        ) as failed:
            transport().send_once(request(f"http://127.0.0.1:{taken.getsockname()[1]}"), 5)
    assert (failed.value.sent, failed.value.hopeless, failed.value.outcome) == (
        False,
        False,
        "not_sent",
    )


@pytest.mark.parametrize(
    ("code", "hopeless"), [(socket.EAI_NONAME, True), (socket.EAI_AGAIN, False)]
)
def test_a_name_that_does_not_exist_is_hopeless_and_a_failing_name_server_is_not(
    monkeypatch, code, hopeless
):
    def no_name_server(*args):
        raise socket.gaierror(code, "said by the C library")

    monkeypatch.setattr(socket, "getaddrinfo", no_name_server)
    with pytest.raises(
        AttemptFailed, match=r"the host name .*\(service\.example port 80\)"
    ) as failed:
        transport().send_once(request("http://service.example"), 5)
    assert (failed.value.sent, failed.value.hopeless) == (False, hopeless)


def test_a_silent_service_is_given_up_in_time():
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(AttemptFailed, match="in time") as failed,
    ):
        transport().send_once(request(f"http://127.0.0.1:{silent.getsockname()[1]}"), 0.1)
    assert failed.value.sent is True


SLOW = {  # how far the attempt gets before its time is up, the scheme, and the message
    "look_up": ("http", r"connecting timed out \(localhost port \d+\)"),
    "_connect_to": (
        "http",
        r"this attempt timed out before the request was sent \(localhost port \d+\)",
    ),
    "_tunnel": (
        "https",
        r"proxy took too long to answer CONNECT \(localhost port \d+, the proxy that the environment",
    ),
}


@pytest.mark.parametrize("step", SLOW)
def test_a_timeout_before_the_request_is_reported_and_nothing_was_sent(monkeypatch, step):
    """The step itself succeeds, but too late."""
    scheme, says = SLOW[step]
    owner = (
        connections
        if step == "look_up"
        else connections.MeteredConnection
        if step == "_connect_to"
        else HTTPSConnection
    )
    real, passed = getattr(owner, step), [0]

    def late(*arguments, **options):
        done = real(*arguments, **options)
        passed[0] += 1000
        return done

    monkeypatch.setattr(owner, step, late)
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + passed[0])
    for module in (sockets, connections):
        monkeypatch.setattr(module, "time", clock)
    with serving(answer(200), answer(200)) as wire:
        url = wire.url.replace("127.0.0.1", "localhost")
        to = "https://service.example" if scheme == "https" else url
        proxies = Proxies(https=url)
        with pytest.raises(AttemptFailed, match=says) as failed:
            transport(proxies=proxies).send_once(request(to), 60)
        assert (failed.value.sent, failed.value.hopeless, failed.value.outcome) == (
            False,
            False,
            "not_sent",
        )
        assert [sent.line for sent in wire.sent if not sent.line.startswith("CONNECT")] == []


def test_no_time_at_all_sends_nothing():
    with serving(answer(200)) as wire:
        with pytest.raises(AttemptFailed, match="timed out before the request was sent") as failed:
            transport().send_once(request(wire.url), 1e-9)
        assert (failed.value.sent, failed.value.hopeless, wire.sent) == (False, False, [])


def test_a_proxy_with_an_unknown_scheme_is_refused():
    proxies = Proxies(http="socks5://127.0.0.1:1")
    with pytest.raises(
        AttemptFailed, match=r"environment names is neither (an )?http:// nor (an )?https://"
    ) as failed:
        transport(proxies=proxies).send_once(request("http://192.0.2.1"), 5)
    assert (failed.value.sent, failed.value.hopeless) == (False, True)


@pytest.mark.parametrize(
    "url",
    [
        "http://[abc]:3128",
        "http://h\u2100st:1",
        "[abc]",
        "http://user:secret@[::1]]:1",
        "http://host:port",
        "host:99999",
        "http://host:0",
        "http://[::1",
        f"http://{'a' * 70}",
    ],
)
def test_a_malformed_proxy_is_said_to_be_the_one_that_the_environment_names(url):
    proxies = Proxies(http=url)
    with pytest.raises(AttemptFailed) as failed:
        transport(proxies=proxies).send_once(request("http://192.0.2.1"), 5)
    assert (failed.value.sent, failed.value.hopeless) == (False, True)
    assert "the proxy that the environment names is" in failed.value.msg
    assert "secret" not in failed.value.msg


@pytest.mark.parametrize(
    "url", ["http://user:p%zz@127.0.0.1:1", "http://[::1]:1/", "http://127.0.0.1:1?x"]
)
def test_a_proxy_that_is_not_there_is_tried(url):
    proxies = Proxies(http=url)
    with pytest.raises(
        AttemptFailed, match=r"no connection: .*the proxy that the environment names"
    ):
        transport(proxies=proxies).send_once(request("http://192.0.2.1"), 5)


@pytest.mark.parametrize(
    ("library", "version", "found"),
    [
        ("requests", None, "has no requests;"),
        ("requests", "2.30.0", r"has requests 2\.30\.0 with urllib3"),
        ("requests", "2.9.2", r"has requests 2\.9\.2 with urllib3"),
        ("urllib3", "3.0.0a1", r"with urllib3 3\.0\.0a1;"),
    ],
)
def test_an_unsuitable_library_is_named_with_the_python_and_the_command(
    monkeypatch, library, version, found
):
    monkeypatch.setattr(transport_module, library, version and SimpleNamespace(__version__=version))
    if library == "urllib3":
        monkeypatch.setattr(transport_module, "requests", SimpleNamespace(__version__="2.34.2"))
    with pytest.raises(MissingLibrary, match=found) as missing:
        transport()
    assert f"{sys.executable} on {platform.node()} has" in missing.value.msg
    assert f"{sys.executable} -m pip install 'requests>=2.31' 'urllib3<3'" in missing.value.msg


@pytest.mark.parametrize("version", ["2.31.0", "2.100", "3.0"])
def test_a_suitable_version_is_accepted(monkeypatch, version):
    monkeypatch.setattr(transport_module, "requests", SimpleNamespace(__version__=version))
    transport().close()


def test_data_after_an_answer_ends_its_connection():
    """An unsolicited second answer in the same segment; the next request must not take it for its
    own.
    """
    got, wire = attempt(
        answer(200, {"a": 1}) + answer(200, {"false": 1}), answer(200, {"b": 2}), times=2
    )
    assert got.body == b'{"b": 2}'
    assert [sent.connection for sent in wire.sent] == [1, 2]


def test_headers_that_do_not_fit_into_memory_are_not_an_answer(monkeypatch):
    def no_memory(*_arguments):
        raise MemoryError

    monkeypatch.setattr(http.client, "parse_headers", no_memory)
    with pytest.raises(AttemptFailed, match="lost before a complete answer") as failed:
        attempt(answer(201, {}))
    assert (failed.value.sent, failed.value.outcome) == (True, "unknown")


def test_a_day_of_timeout_is_not_an_error():
    with serving(answer(200, {})) as wire:
        sender = transport(connect_timeout=1e10)
        assert sender.send_once(request(wire.url), 86400.0).status == 200
        sender.close()


def test_a_refusing_proxy_is_said_to_be_the_one_that_the_environment_names():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        proxy = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(
            AttemptFailed, match=r"refused \(127.0.0.1 port \d+, the proxy that the environment"
        ):
            transport(proxies=Proxies(https=proxy)).send_once(request("https://service.example"), 5)


def test_the_transports_of_several_threads_share_a_context(monkeypatch):
    made = []
    empty = ssl.SSLContext

    def create() -> ssl.SSLContext:
        made.append(1)
        return empty(ssl.PROTOCOL_TLS_CLIENT)

    monkeypatch.setattr(tls_context.ssl, "create_default_context", create)
    settings = [
        ConnectionSettings(connect_timeout=seconds, system_trust=("/a", None)) for seconds in (1, 2)
    ]
    assert (
        len({tls_context.tls_context(each, DEFAULT_CA_BUNDLE_PATH) for each in settings})
        == len(made)
        == 1
    )
    tls_context.tls_context(settings[0]._replace(system_trust=("/b", None)), DEFAULT_CA_BUNDLE_PATH)
    assert len(made) == 2


def test_urllib3_logs_nothing_and_others_do_while_a_request_is_in_flight(caplog):
    """It would quote the malformed line. With `log_path`, Ansible logs the progress of a list
    meanwhile.
    """

    def choose(_sent):
        logging.getLogger("ansible").info("progress")
        return b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nmalformed, with the token\r\n\r\n{}"

    with running(choose) as wire, caplog.at_level(logging.DEBUG):
        sender = transport()
        sender.send_once(request(wire.url), 10)
        sender.close()
    assert caplog.messages == ["progress"]
