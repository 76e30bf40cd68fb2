"""The environment of one task: the service, and whatever stands next to it and in front of it."""

from __future__ import annotations

import json
import os
import ssl
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterator
from unittest import mock

import trustme
from support import CREATE, run_task
from support.service import Received, Service

# This host, by an address that is not called loopback: only such a host is reached through a proxy.
BEHIND_PROXY = "0.0.0.0"
CLIENT = {"client_id": "client-of-the-tests", "client_secret": "secret-of-the-tests"}


class Authority:
    """A certificate authority, created once because key generation is slow."""

    def __init__(self, directory: Path) -> None:
        self.path = str(directory / "authority.pem")
        authority = trustme.CA()
        authority.cert_pem.write_to_path(self.path)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1", "localhost", BEHIND_PROXY).configure_cert(self.context)


@dataclass
class Lab:
    """What the scripts and options of a case can refer to."""

    resource: str
    directory: Path
    authority: Authority
    service: Service
    url: str = ""
    others: dict[str, Service] = field(default_factory=dict)

    @property
    def operation(self) -> str:
        return "POST" if self.resource == CREATE else "PUT"

    def named(self, text: str) -> dict:
        """Return the option that identifies an asset: a name for the POST, an id for the PUT."""
        return {"name" if self.resource == CREATE else "id": text}

    def last(self) -> Received:
        return self.service.received[-1]


@contextmanager
def lab_of(case, resource: str, directory: Path, authority: Authority) -> Iterator[Lab]:
    """Start the servers that the case needs."""
    with ExitStack() as stack:

        def start(service: Service) -> Service:
            return stack.enter_context(service)

        service = start(
            Service(case.service, tls=authority.context if case.tls == "server" else None)
        )
        if case.tls == "script":
            service.scheme = "https"
        lab = Lab(resource, directory, authority, service, service.url)
        for name in ("token_endpoint", "proxy"):
            if getattr(case, name):
                lab.others[name] = start(Service(getattr(case, name)))
        yield lab


def run(lab: Lab, case, **options) -> dict:
    """Run the task of a case and return its result."""
    given = {"base_url": lab.url, "retries": 1, "timeout": 5, **options}
    chosen = case.options(lab) if callable(case.options) else case.options
    environment = {}
    if lab.service.scheme == "https":
        given["ca_path"] = lab.authority.path
    if "token_endpoint" in lab.others:
        given.update(
            CLIENT, access_token=None, auth_url=f"{lab.others['token_endpoint'].url}/token"
        )
    if "proxy" in lab.others:
        environment.update(HTTP_PROXY=lab.others["proxy"].url, HTTPS_PROXY=lab.others["proxy"].url)
        given.update(base_url=lab.url.replace("127.0.0.1", BEHIND_PROXY), allow_http=True)
    given.update(chosen)
    with mock.patch.dict(os.environ, environment):
        return run_task(lab.resource, **given)


def assert_agreement(lab: Lab, result: dict, told: str = "") -> None:
    """Check that the result is what really happened at the service."""
    done, outcome, failed = len(lab.service.done), result["outcome"], result.get("failed", False)
    told = told or result.get("msg", "ok")
    if outcome == "not_sent":
        assert lab.service.bytes_read == 0, told
    if outcome == "rejected":
        assert done == 0, told
    if outcome == "accepted":
        assert done > 0, told
    if not failed:
        assert outcome == "accepted", told
    assert result["changed"] == (outcome == "accepted"), told
    if lab.operation == "POST":
        assert done <= 1, told


def asset_is_whole(lab: Lab, result: dict) -> bool:
    """Whether the asset of a success is the last envelope of the service."""
    return result["asset"] == json.loads(lab.service.envelopes[-1])
