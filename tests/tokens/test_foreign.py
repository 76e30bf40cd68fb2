# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tokens from a third-party identity provider: oauth2-mock-server, installed with npm."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "oauth2-mock-server@8.2.3"
pytestmark = [
    pytest.mark.stress,
    pytest.mark.skipif(
        not (shutil.which("npm") and shutil.which("node")),
        reason="the identity provider needs npm and node, which are not available",
    ),
]
BASIC = "Basic " + base64.b64encode(b"web:s3cret-of-web").decode()
BY_FORM = {"client_id": "web", "client_secret": "s3cret-of-web"}
GRANT = {"grant_type": "client_credentials"}


class Provider:
    """The running identity provider."""

    def __init__(self, package: Path) -> None:
        script = str(Path(__file__).with_name("provider.mjs"))
        self.process = subprocess.Popen(
            ["node", script, str(package)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self.url = self.line()["url"]

    def line(self):
        """The next line that it prints, such as a token request that it answered."""
        return json.loads(self.process.stdout.readline())

    def answer_next(self, **answer) -> None:
        """Make it answer the next token request with that status or body."""
        print(json.dumps(answer), file=self.process.stdin, flush=True)
        assert self.line() == "understood"

    def close(self) -> None:
        """Stop it."""
        self.process.communicate(timeout=10)


@pytest.fixture(scope="module")
def package() -> Path:
    """The directory of the package, which is fetched if it is missing."""
    directory = ROOT / ".build/npm"
    found = directory / "node_modules/oauth2-mock-server"
    if not found.exists():
        directory.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [
                "npm",
                "install",
                "--no-audit",
                "--no-fund",
                "--silent",
                "--prefix",
                str(directory),
                PACKAGE,
            ],
            check=True,
            timeout=300,
        )
    return found


@pytest.fixture
def provider(package):
    running = Provider(package)
    yield running
    running.close()


REQUESTS = {
    "basic": ({}, BASIC, GRANT),
    "post": ({"client_authentication": "post"}, None, {**GRANT, **BY_FORM}),
    "scopes": ({"scopes": ["vm.write", "roles"]}, BASIC, {**GRANT, "scope": "vm.write roles"}),
    "audience": (
        {"auth_parameters": {"aud": "https://a.example/é?b=c&d"}},
        BASIC,
        {**GRANT, "aud": "https://a.example/é?b=c&d"},
    ),
    "password": (
        {
            "auth_parameters": {
                "grant_type": "password",
                "username": "alice",
                "password": "w0nder/land",
            }
        },
        BASIC,
        {"grant_type": "password", "username": "alice", "password": "w0nder/land"},
    ),
}


def claims(token: str) -> dict:
    """The payload of a JSON Web Token (RFC 7519 section 3)."""
    payload = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


@pytest.mark.parametrize(("options", "header", "form"), REQUESTS.values(), ids=REQUESTS)
def test_the_service_receives_its_token(
    task, emulator, conversation, provider, options, header, form
):
    emulator.api.settings = replace(emulator.api.settings, token=None)  # any token is accepted
    result = task(auth_url=f"{provider.url}/token", **options)
    asked = provider.line()
    assert result["outcome"] == "accepted", result
    assert (asked["authorization"], asked["form"]) == (header, form)
    (request,) = conversation.requests("create_virtual_machine")
    token = asked["answer"]["access_token"]
    assert dict(request.headers)["Authorization"] == f"Bearer {token}"
    assert claims(token).get("scope") == form.get("scope")
    assert token not in json.dumps(result)


def test_a_token_that_the_service_refuses_is_replaced_once(task, provider):
    result = task(auth_url=f"{provider.url}/token")  # the emulator accepts only its own tokens
    assert (result["outcome"], result["status"], result["request_attempts"]) == ("rejected", 401, 2)
    tokens = [provider.line()["answer"]["access_token"] for dummy in range(2)]
    assert len(tokens) == 2
    assert not [token for token in tokens if token in json.dumps(result)]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            {
                "status": 401,
                "body": {"error": "invalid_client", "error_description": "no such client"},
            },
            "it answered with status 401: invalid_client: no such client",
        ),
        (
            {"status": 400, "body": {"error": "invalid_scope"}},
            "it answered with status 400: invalid_scope",
        ),
        ({"body": {"token_type": "Bearer"}}, "without a usable access_token"),
    ],
)
def test_a_refusal_names_the_token_endpoint(task, conversation, provider, answer, said):
    provider.answer_next(**answer)
    result = task(auth_url=f"{provider.url}/token")
    assert (result["failed"], result["outcome"]) == (True, "not_sent")
    assert f"no access token from {provider.url}/token (auth_url)" in result["msg"]
    assert said in result["msg"]
    assert conversation.statuses() == []


def test_a_wrong_path_is_reported_as_such(task, provider):
    result = task(auth_url=f"{provider.url}/nowhere")
    assert (result["failed"], result["outcome"]) == (True, "not_sent")
    assert "(auth_url): it answered with status 404" in result["msg"]
