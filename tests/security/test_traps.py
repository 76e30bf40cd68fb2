"""Pitfalls of the libraries and the environment, each with a guard without which its test fails."""

from __future__ import annotations

import pytest
from faults.behaviors import answers, grants, refuses, whole
from support import CREATE, UPDATE, run_exactly, run_task
from support.service import Service

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
            "ledger": "none",
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
