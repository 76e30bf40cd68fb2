# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A task from options to result: every error of ours becomes a failed task, and no secret is shown."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._http import transport
from ansible_collections.infrastructure.services.plugins.module_utils._secrets import Secrets
from ansible_collections.infrastructure.services.plugins.module_utils._task import options, task
from support import CREATE, RESOURCES, UPDATE, run_exactly, run_task
from support.wire import Last, answer, serving

SECRET = "s3cret/ü+\"%"  # has another form in a URL, in a form field, in JSON and in Python
HIDDEN = [SECRET, quote(SECRET, safe=""), json.dumps(SECRET)[1:-1]]


@pytest.mark.parametrize("resource", RESOURCES)
def test_a_resource_adds_its_options_to_the_shared_ones(resource):
    spec = task.argument_spec(RESOURCES[resource].options, RESOURCES[resource].constraints)
    assert set(spec["argument_spec"]) == set(options.ARGUMENT_SPEC) | set(RESOURCES[resource].options)
    assert {key: spec[key] for key in spec if key != "argument_spec"} == RESOURCES[resource].constraints


@pytest.mark.parametrize("options", [{"timeout": 0}, {"base_url": "x"}, {"access_token": "a b"}, {"name": ""}])
def test_a_refused_option_fails_the_task_and_nothing_is_sent(options):
    result = run_task(CREATE, **{"base_url": "https://service.example", **options})
    assert (result["failed"], result["changed"], result["outcome"]) == (True, False, "not_sent")
    assert result["msg"].startswith(f"{next(iter(options))}: ")


def test_a_missing_library_fails_the_task(monkeypatch):
    monkeypatch.setattr(transport, "requests", None)
    result = run_task(CREATE, base_url="https://service.example")
    assert (result["failed"], result["changed"], result["outcome"]) == (True, False, "not_sent")
    assert "requests" in result["msg"]


def test_a_bug_of_ours_is_not_reported_as_an_error_of_the_service():
    def connect(settings):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_task(CREATE, base_url="https://service.example", connect=connect)


@pytest.mark.parametrize(("validate_certs", "warned"), [(True, []), (False, ["validate_certs is false"])])
def test_disabled_certificate_validation_raises_a_warning(validate_certs, warned):
    result = run_task(CREATE, check_mode=True, base_url="https://service.example", validate_certs=validate_certs)
    assert [warning[:23] for warning in result["warnings"]] == warned


def test_the_trace_shows_the_result_of_each_attempt():
    with serving(answer(503), answer(200, {})) as wire:
        first, second = run_task(UPDATE, base_url=wire.url)["trace"]
    assert set(first) == {"method", "url", "status", "error", "seconds", "wait"}
    assert (first["method"], first["status"], first["wait"]) == ("PUT", 503, 0)
    assert (second["status"], second["wait"]) == (200, None)
    assert first["url"] == second["url"] == f"{wire.url}/api/v1/services/cassandra/application_roles/role-0001"


def test_diff_and_trace_are_shown_when_requested():
    result = {"a": 1, "diff": {}, "trace": []}
    assert task.presentable(result, Secrets(), diff_mode=False, verbosity=2) == {"a": 1}
    assert task.presentable(result, Secrets(), diff_mode=True, verbosity=2) == {"a": 1, "diff": {}}
    assert task.presentable(result, Secrets(), diff_mode=False, verbosity=3) == {"a": 1, "trace": []}


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize("last", [
    answer(200, {"name": SECRET, SECRET: [SECRET, "assertion-secret"]}), answer(403), Last(b""),
])
def test_a_secret_that_comes_back_is_hidden_in_every_form(last, check_mode):
    """As a value and as a key of the answer; values that other options state openly stay visible."""
    token = answer(200, {"access_token": "fetched-token"})
    with serving(token, last, token, last) as wire:
        options = {
            "base_url": wire.url, "auth_url": f"{wire.url}/token", "client_id": "c", "client_secret": SECRET, "id": "i",
            "auth_parameters": {"client_assertion": "assertion-secret", "audience": wire.url}, "body": {"a": wire.url},
            "retries": 0,
        }
        result = run_exactly(UPDATE, options, check_mode)
        assert result["request"]["url"].startswith(wire.url)
        assert result["request"]["body"] == {"a": wire.url}
    shown = json.dumps(result, ensure_ascii=False)
    for secret in (*HIDDEN, "assertion-secret", *([] if check_mode else ["fetched-token"])):
        assert json.dumps(secret, ensure_ascii=False)[1:-1] not in shown
