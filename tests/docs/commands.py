# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every command that the documents name, and where the ones are run that a page does not run by
itself.

A command is a line of a shell block, a piece of code in a sentence that begins with a program, a
line of a pipeline in docs/ci, or one that a playbook or a script of tests/tools has in a comment or
runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml
from docs.guides import ROOT, blocks, in_order

FOLLOWED = in_order()  # test_guides.py runs the shell blocks of these pages
PAGES = [
    *FOLLOWED,
    *(
        ROOT / name
        for name in (
            "CONTRIBUTING.md",
            "AGENTS.md",
            "SECURITY.md",
            "roles/fleet/README.md",
            "extensions/emulator/README.md",
        )
    ),
    *sorted(ROOT.glob("docs/*.md")),
]
PIPELINES = [ROOT / "docs/ci/github.yml", ROOT / "docs/ci/gitlab-ci.yml"]
SCRIPTS = [
    path
    for pattern in ("playbooks/*.yml", "tests/tools/*")
    for path in sorted(ROOT.glob(pattern))
    if path.is_file()
]
PROGRAM = (
    r"(?:\w+=\S+ )?(?:make|ansible[\w-]*|python|pip|pytest|pre-commit|molecule|\.venv/bin/[\w-]+)"
)
IN_A_SENTENCE = re.compile(rf"(?<!`)(?:``|`)({PROGRAM}\s[^`]+)`")
IN_A_PIPELINE = re.compile(r"ansible[\w-]* |python -m pip ")  # the rest is the pipeline's own
IN_A_SCRIPT = re.compile(r"(ansible-playbook (?:[^\n]*\\\n)*[^\n]*)")

NETWORK = "needs a network"
_NEW_URL = "tests/ledger/test_new_url.py"
_PLAYBOOKS, _EMULATOR = (
    "tests/integration/test_playbooks.py",
    "tests/integration/test_emulator_playbook.py",
)
_CSV = "tests/integration/test_csv.py"
_VERIFY = "tests/ecosystem/test_verify.py"
_PIPELINE = "tests/ecosystem/test_gitlab.py::test_a_plan_is_commented_approved_and_carried_out_and_a_lost_answer_settled"
_PLAYBOOK = "ansible-playbook infrastructure.services"
_FROM_THE_CONTROLLER = "from_the_controller_whatever_the_inventory_says"
# The start of a command that no page runs by itself, the longer ones first: the test or the script
# that runs it. What stands in a sentence only, and in a block as well, need not be here; nor do
# targets of make.
RUN_BY = {
    "make demo": ".ci/run",
    "make test": ".ci/run",
    "ansible-galaxy collection install infrastructure.services": NETWORK,  # Galaxy
    "ansible-builder build --file execution-environment.yml": NETWORK,  # a registry of images
    "ansible-navigator run ": NETWORK,  # the image
    "python -m pip install --quiet 'ansible-core": NETWORK,  # in a pipeline, into an empty container
    "pip install pre-commit": NETWORK,
    "pre-commit install": NETWORK,  # it fetches the hooks at the next commit
    "git clone ": NETWORK,
    "ansible-builder create --file execution-environment.yml": "tests/ecosystem/test_execution_environment.py::test_the_definition_makes_a_build_context",
    "gpg --dearmor ": f"{_VERIFY}::test_a_release_exactly_as_signed_is_accepted",
    "gpgv ": f"{_VERIFY}::test_a_release_exactly_as_signed_is_accepted",
    "ansible-galaxy collection install --offline ": f"{_VERIFY}::test_the_installed_release_is_accepted",
    "GNUPGHOME=$(mktemp -d) ansible-galaxy collection verify ": f"{_VERIFY}::test_the_installed_release_is_accepted",
    "cp -r ~/.ansible/collections/ansible_collections/infrastructure/services/extensions/skeleton/molecule .": "tests/tools/molecule",
    "molecule test": "tests/tools/molecule",
    "ansible-test sanity": "tests/tools/sanity",
    "ansible-doc -t ": "tests/docs/test_guides.py::test_a_page_of_ansible_doc_is_shown",
    ".venv/bin/pytest tests/unit -k date": "tests/contract/test_commands.py::test_the_command_of_contributors_runs",
    ".venv/bin/python tests/tools/breaks.py": "tests/contract/test_breaks.py::test_every_break_can_be_applied",
    "cd extensions": "tests/unit/extensions/test_main.py::test_it_is_ready_when_it_says_so_and_exits_when_told",
    "python -m emulator": "tests/unit/extensions/test_main.py::test_it_is_ready_when_it_says_so_and_exits_when_told",
    f"{_PLAYBOOK}.emulator -e emulator_port=8081 ": f"{_EMULATOR}::test_the_emulator_stays_in_the_background_and_has_the_settings",
    f'{_PLAYBOOK}.emulator -e \'{{"emulator_settings": ': f"{_EMULATOR}::test_the_emulator_stays_in_the_background_and_has_the_settings",
    f"{_PLAYBOOK}.demo -e ": ".ci/run",  # in tests/tools/demo
    f"{_PLAYBOOK}.demo": f"{_PLAYBOOKS}::test_the_demo_needs_no_variable_and_leaves_no_emulator",
    f"{_PLAYBOOK}.create_virtual_machine -e '{{": f"{_PLAYBOOKS}::test_one_asset_is_sent_{_FROM_THE_CONTROLLER}",
    f"{_PLAYBOOK}.update_cassandra_application_role -e '{{": f"{_PLAYBOOKS}::test_one_asset_is_sent_{_FROM_THE_CONTROLLER}",
    "ansible-playbook -i hosts.yml --forks 20 infrastructure.services.create_fleet ": f"{_PLAYBOOKS}::test_a_fleet_is_created_{_FROM_THE_CONTROLLER}",
    f"{_PLAYBOOK}.show_ledger -e ledger=fleet.db -e names=": f"{_PLAYBOOKS}::test_the_ledger_is_shown_as_a_table",
    f"{_PLAYBOOK}.show_ledger -e ledger=fleet.db -e file=": f"{_CSV}::test_a_fleet_from_a_file_is_exported_and_read_back_without_a_difference",
    f"{_PLAYBOOK}.in_doubt -e fail=true": f"{_PLAYBOOKS}::test_a_watcher_fails_if_something_is_in_doubt_or_there_is_no_ledger",
    f"{_PLAYBOOK}.in_doubt -e ledger=fleet.db -e fail=true": f"{_PLAYBOOKS}::test_a_watcher_fails_if_something_is_in_doubt_or_there_is_no_ledger",
    f"{_PLAYBOOK}.settle -e ledger=fleet.db -e file=existing.csv": "tests/integration/test_csv.py::test_machines_that_exist_already_are_adopted_from_a_file",
    f"{_PLAYBOOK}.move_ledger -e ledger=fleet.db -e to=/srv/": "tests/ledger/test_move.py::test_the_playbook_moves_a_ledger_and_says_where_it_is",
    f"{_PLAYBOOK}.move_ledger -e ledger=fleet.db -e to=postgresql:": "tests/ledger/test_move.py::test_the_playbook_moves_a_ledger_and_says_where_it_is",
    f"{_PLAYBOOK}.move_ledger -e ledger=fleet.db -e base_url=": f"{_NEW_URL}::test_the_playbook_moves_the_entries_and_the_list_sends_nothing_more",
    "ansible-playbook fleet.yml --check -e fleet_report=": _PIPELINE,
    "ansible-playbook fleet.yml -e fleet_report=": _PIPELINE,
}


class Command(NamedTuple):
    """A command, the page that names it, and whether it stands in a shell block."""

    page: str
    text: str
    in_block: bool


def _joined(text: str) -> str:
    """Return a command on one line."""
    return " ".join(re.sub(r"\\\n#?", " ", text).split())


def _of_page(path: Path) -> Iterator[Command]:
    name = path.relative_to(ROOT).as_posix()
    for block in blocks(path):
        for line in block.text.splitlines() if block.language == "shell" and not block.name else ():
            yield Command(name, line, True)
    text = re.sub(
        r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    for found in IN_A_SENTENCE.findall(text):
        yield Command(name, _joined(found), False)


def _lines(part: object) -> Iterator[str]:
    """Yield the lines of the scripts of a pipeline."""
    if isinstance(part, dict):
        for key, value in part.items():
            if key in ("script", "before_script", "run") and not isinstance(value, dict):
                for lines in value if isinstance(value, list) else [value]:
                    yield from lines.replace("\\\n", " ").splitlines()
            else:
                yield from _lines(value)
    for element in part if isinstance(part, list) else ():
        yield from _lines(element)


def _of_pipeline(path: Path) -> Iterator[Command]:
    for line in _lines(yaml.safe_load(path.read_text(encoding="utf-8"))):
        if IN_A_PIPELINE.match(line.strip()):
            yield Command(path.relative_to(ROOT).as_posix(), _joined(line), False)


def _of_script(path: Path) -> Iterator[Command]:
    for line in IN_A_SCRIPT.findall(path.read_text(encoding="utf-8")):
        yield Command(path.relative_to(ROOT).as_posix(), _joined(line), False)


def commands() -> list[Command]:
    """Return every command of the documents."""
    return [
        command
        for read, paths in ((_of_page, PAGES), (_of_pipeline, PIPELINES), (_of_script, SCRIPTS))
        for path in paths
        for command in read(path)
    ]


def run_by(text: str) -> str:
    """Return where a command is run that no page runs by itself; empty for another one."""
    return next((where for start, where in RUN_BY.items() if text.startswith(start)), "")
