# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every example of the guides runs, with the emulator's address in place of the addresses in the example."""

from __future__ import annotations

import shlex

import pytest
import yaml
from docs.guides import GUIDES, ROOT, Step, read

NAMES = [path.stem for path in GUIDES]
# Set-up steps that the fixtures and the Makefile perform; those that tests/ecosystem covers, and one that the tests of
# README.md cover.
NOT_RUN = ("make demo", "gpg --dearmor ", "gpgv ", "ansible-galaxy collection install --offline ",
           "GNUPGHOME=$(mktemp -d) ansible-galaxy collection verify ", "export INFRASTRUCTURE_SERVICES_",
           "ansible-galaxy collection install infrastructure.services",
           "python -m pip install ", "ansible-builder create --file execution-environment.yml",
           "cp -r ~/.ansible/collections/ansible_collections/infrastructure/services/extensions/skeleton/molecule .",
           "molecule test", "ansible-playbook infrastructure.services.emulator")


def examples(name: str):
    """The examples of a guide."""
    return read(ROOT / f"docs/docsite/rst/{name}.rst")


def with_addresses(text: str, url: str) -> str:
    """The example, pointed at the emulator."""
    for address, ours in (("https://login.example.com", url), ("https://service.example.com", url),
                          ("http://127.0.0.1:8080", url)):
        text = text.replace(address, ours)
    return text


def follow(ansible, service, name: str) -> None:
    """Do what a guide says, from top to bottom."""
    guide = examples(name)
    for caption, text in guide.files.items():
        path = ansible.directory / caption
        path.parent.mkdir(exist_ok=True)
        path.write_text(with_addresses(text, service.url), encoding="utf-8")
    for step in guide.steps:
        whole = step.text + "".join(text for caption, text in guide.files.items() if caption in step.text)
        token = {"INFRASTRUCTURE_SERVICES_ACCESS_TOKEN": None} if "auth_url" in whole else {}
        run(ansible, step._replace(text=with_addresses(step.text, service.url)), token)


def run(ansible, step: Step, environment: dict) -> None:
    """Run a step; assert its success, and the output that the guide shows."""
    if step.kind == "tasks":
        ansible.tasks(step.text, **environment).ok()
    elif not step.text.startswith(NOT_RUN):
        command, *arguments = shlex.split(step.text)
        done = ansible.command(command, *arguments, **environment).ok()
        assert step.output in done.output


@pytest.mark.parametrize("name", [name for name in NAMES if name not in {"authenticate", "update_a_role"}])
def test_the_examples_of_a_guide_run(ansible_once, service, name):
    service.seed("role-1", name="orders")  # the role that the emulator's playbook has
    follow(ansible_once, service, name)


def test_the_guide_to_authentication_fetches_tokens_where_it_says_so(ansible_once, service):
    service.settings(client_id="provisioning", client_secret=yaml.safe_load(
        examples("authenticate").files["group_vars/all.yml"])["infrastructure_client_secret"])
    follow(ansible_once, service, "authenticate")
    assert [request["operation"] for request in service.conversation()] == [
        "create_virtual_machine",
        "token", "create_virtual_machine", "create_virtual_machine",
        "token", "create_virtual_machine"]


@pytest.mark.parametrize("reading", ["merge", "replace"])
def test_the_guide_to_updates_holds_under_both_readings(ansible_once, service, reading):
    service.settings(put=reading)
    service.seed("role-1", name="orders", attributes={"login": False})
    follow(ansible_once, service, "update_a_role")


def test_every_command_of_the_guides_is_run_or_listed_as_not_run():
    lines = [step.text for name in NAMES for step in examples(name).steps if step.kind == "command"]
    assert [line for line in lines if not line.startswith(("ansible", *NOT_RUN))] == []
    assert [start for start in NOT_RUN if not any(line.startswith(start) for line in lines)] == []


def test_every_guide_is_listed():
    (section,) = yaml.safe_load((ROOT / "docs/docsite/extra-docs.yml").read_text(encoding="utf-8"))["sections"]
    assert sorted(section["toctree"]) == NAMES
