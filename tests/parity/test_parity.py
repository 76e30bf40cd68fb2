# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each case has the same result, and sends the same bytes, inside the Ansible worker and as a
module in its own process.

All cases of a path run in one playbook. The module path is forced by becoming the current user,
which changes nothing else. The cases WITHOUT_ANSIBLE run the module in this process: options in as
JSON, the result out as printed.
"""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Iterable, Iterator, NamedTuple

import pytest
import yaml
from ansible.parsing.vault import VaultLib, VaultSecret
from parity.cases import CASES, TOKEN_OF_THE_RUN, WITHOUT_ANSIBLE, Case
from support.front import run_module
from support.running import Ansible
from support.wire import by_case, running

pytestmark = pytest.mark.matrix  # takes a minute

PASSWORD = "of the vault"
WORDS = {
    "name": "web ü",
    "cpu": 4,
    "list": ["a", 2],
    "flag": True,
    "attributes": {"cpu": "5", "team": None},
    "extra": {"a": [1, {"b": None}], "2026": "x"},
}
PATHS = {"worker": {}, "module": {"become": True, "become_method": "myself"}}

# What may differ, and why.
ALLOWED = {
    "failed_when_suppressed_exception": "ansible-core's own, only of what a module said",
}


class Outcome(NamedTuple):
    """The results of one run of all cases."""

    output: str
    results: dict[str, list[dict]]  # of a loop's items, and of the task
    sent: dict[str, list[tuple]]


def vaulted(text: str) -> str:
    """Return the text as a YAML scalar with inline encryption."""
    envelope = VaultLib([("default", VaultSecret(PASSWORD.encode()))]).encrypt(text).decode()
    return f"!vault {json.dumps(envelope)}"


def task(number: int, name: str, case: Case) -> str:
    """Return the task of a case."""
    options = case.options.replace("@VAULT@", vaulted("in place ü"))
    keywords = yaml.safe_load(case.keywords)
    head = {
        "name": name,
        "ignore_errors": True,
        "vars": {"url": f"{{{{ service }}}}/{number}"},
        **keywords,
    }
    return f"- {json.dumps(head)[:-1]}, infrastructure.services.{case.module}: {options}}}"


def run_without_ansible(case: Case, url: str, nobody: str) -> dict:
    """Return the result of a module that runs in this process."""
    given = yaml.safe_load(case.options.replace("{{ url }}", url).replace("{{ nobody }}", nobody))
    options = json.loads(
        json.dumps({"base_url": url, "access_token": TOKEN_OF_THE_RUN, **given}, default=str)
    )
    result = run_module(case.module, options)
    return {
        **result,
        "failed": result.get("failed", False),
        "changed": result.get("changed", False),
    }


def playbook(url: str, nobody: str, keywords: dict, names: Iterable[str]) -> str:
    """Return one play with these cases, written as JSON except for what only YAML can express."""
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        **keywords,
        "module_defaults": {
            "group/infrastructure.services.all": {
                "base_url": "{{ url }}",
                "access_token": TOKEN_OF_THE_RUN,
            }
        },
    }
    words = {"service": url, "url": "a task names its own", "nobody": nobody, "words": WORDS}
    lines = [
        f"- {json.dumps(play)[:-1]},",
        f"  vars: {json.dumps(words)[:-1]}, vaulted: {vaulted('secret ü')}, token: {vaulted('se-cret')}, structure: {{a: [{vaulted('inner')}], b: 1}}}},",
        "  tasks: [",
        "    {name: earlier, ansible.builtin.set_fact: {stdout_lines: [one two]}, register: earlier},",
        *(
            f"    {task(number, name, case)[2:]},"
            for number, (name, case) in enumerate(CASES.items())
            if name in names
        ),
        "]}",
    ]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def nobody() -> Iterator[str]:
    """An address where nothing listens, reserved for the duration."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture(scope="module")
def runs(
    collections: Path, tmp_path_factory: pytest.TempPathFactory, nobody: str
) -> dict[str, Outcome]:
    """Both runs, against the same service at the same address, from a directory other than the
    playbook's.
    """
    outcomes = {}
    answers = {str(number): case.answers for number, case in enumerate(CASES.values())}
    with running(by_case(answers)) as service:
        directory = tmp_path_factory.mktemp("parity")
        (directory / "plays/authorities").mkdir(parents=True)
        (directory / "password").write_text(PASSWORD)
        for path, keywords in PATHS.items():
            service.choose = by_case(answers)
            service.sent.clear()
            play = directory / "plays/play.yml"
            started = [name for name in CASES if path == "worker" or name not in WITHOUT_ANSIBLE]
            play.write_text(playbook(service.url, nobody, keywords, started), encoding="utf-8")
            run = Ansible(directory, collections, service.url, "local").playbook(
                str(play),
                "-vvv",
                "--vault-password-file",
                str(directory / "password"),
                ANSIBLE_INJECT_INVOCATION="true",
                ANSIBLE_PIPELINING="true",
                PYTHONHASHSEED="0",
                INFRASTRUCTURE_SERVICES_ACCESS_TOKEN=None,
                INFRASTRUCTURE_SERVICES_BASE_URL=None,
            )
            results = {
                name: [line["result"] for line in run.results if line["task"] == name]
                for name in started
            }
            with (
                pytest.MonkeyPatch.context() as patch
            ):  # Ansible starts a module in the directory of the playbook
                patch.chdir(play.parent)
                results |= {
                    name: [run_without_ansible(case, f"{service.url}/{number}", nobody)]
                    for number, (name, case) in enumerate(CASES.items())
                    if name not in started
                }
            sent = {
                name: [
                    (each.line, each.headers, each.body) for each in service.sent_by(str(number))
                ]
                for number, name in enumerate(CASES)
            }
            outcomes[path] = Outcome(run.output, results, sent)
    return outcomes


def as_text(value: object) -> str:
    """Return the value as JSON, in which 1, 1.0 and true differ."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)


def comparable(value: object) -> object:
    """Return the value without what may differ."""
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items() if key not in ALLOWED}
    return [comparable(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", CASES)
def test_the_result_is_the_same(runs, name):
    in_worker, as_module = (comparable(runs[path].results[name]) for path in PATHS)
    if name in WITHOUT_ANSIBLE:
        # What ansible-core adds to the result of a module that it has started.
        in_worker = [
            {
                key: value
                for key, value in result.items()
                if not key.startswith("_ansible_") and key != "exception"
            }
            for result in in_worker
        ]
    assert in_worker
    assert as_text(in_worker) == as_text(as_module)


@pytest.mark.parametrize("name", CASES)
def test_the_same_bytes_are_sent(runs, name):
    assert runs["worker"].sent[name] == runs["module"].sent[name]
    assert len(runs["worker"].sent[name]) == len(CASES[name].answers)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.outcome])
def test_the_case_has_the_expected_outcome(runs, name):
    (result,) = runs["worker"].results[name]
    assert result["outcome"] == CASES[name].outcome


def test_each_run_took_its_path(runs):
    ran = "Using module file"  # what -vvv prints for each module that is packaged and run
    assert runs["worker"].output.count(ran) == 0
    assert runs["module"].output.count(ran) > len(CASES) - len(WITHOUT_ANSIBLE)


def test_no_run_shows_a_traceback(runs):
    for run in runs.values():
        assert "Traceback" not in run.output
