# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each command that the documents name is run somewhere, and gives a playbook only variables that
it takes.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

from contract.test_playbooks import PLAYBOOKS, ROLE, taken
from docs.commands import FOLLOWED, NETWORK, PAGES, PIPELINES, RUN_BY, SCRIPTS, commands, run_by
from docs.guides import ROOT, read

COMMANDS = commands()
FOLLOWED_NAMES = {path.relative_to(ROOT).as_posix() for path in FOLLOWED}
RUN_ON_A_PAGE = {
    command.text for command in COMMANDS if command.in_block and command.page in FOLLOWED_NAMES
}
FILES = {name: text for page in FOLLOWED for name, text in read(page).files.items()}
FLEET = "infrastructure.services.fleet"
CI = (ROOT / ".ci/run").read_text(encoding="utf-8")


def test_the_commands_of_every_kind_of_document_are_found():
    pages = {command.page for command in COMMANDS}
    assert pages >= {
        "README.md",
        "CONTRIBUTING.md",
        "extensions/emulator/README.md",
        "docs/docsite/rst/ledger.rst",
        "docs/docsite/rst/fleet.rst",
        "docs/ci/github.yml",
        "docs/ci/gitlab-ci.yml",
        "playbooks/settle.yml",
        "tests/tools/demo",
    }
    assert len(COMMANDS) > 150


def test_every_command_is_run_on_its_page_or_where_the_table_says():
    """Those of make are tried below."""
    assert [
        command
        for command in COMMANDS
        if not (
            command.text in RUN_ON_A_PAGE
            or run_by(command.text)
            or command.text.startswith("make ")
        )
    ] == []


def test_every_row_of_the_table_is_needed():
    texts = [command.text for command in COMMANDS]
    assert [start for start in RUN_BY if not any(text.startswith(start) for text in texts)] == []


def test_the_places_where_commands_are_run_exist():
    assert [where for where in RUN_BY.values() if where != NETWORK and not exists(where)] == []


def exists(where: str) -> bool:
    """Return whether there is such a function of a test file, or a tool that a build server runs."""
    file, _colons, name = where.partition("::")
    if not name:
        return file == ".ci/run" or file in CI
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_a_build_server_runs_what_newcomers_run_first():
    """In a clone and an empty home, before there is anything that only a contributor has."""
    lines = [line for line in CI.splitlines() if re.match(r"make |.*HOME=.* make ", line.strip())]
    assert lines[0] == '(cd "$newcomer/clone" && HOME=$newcomer/home make demo)'
    assert lines[1:3] == ["make test", "make matrix"]


def test_make_has_every_target():
    of_make = sorted({each.text for each in COMMANDS if each.text.startswith("make ")})
    assert {text: why for text in of_make if (why := why_not_made(text))} == {}


def why_not_made(command: str) -> str:
    """Return what make says about a command that it cannot run, '' if it can."""
    dry = ["make", "--dry-run", *shlex.split(command)[1:]]
    done = subprocess.run(dry, cwd=ROOT, capture_output=True, text=True, check=False)
    is_idle = "Nothing to be done" in done.stdout
    return done.stdout if is_idle else done.stderr if done.returncode else ""


def test_every_tool_is_run_by_make_a_build_server_another_tool_a_test_or_hand():
    tools = [path.name for path in SCRIPTS if path.parent.name == "tools"]
    assert [tool for tool in tools if not is_called(tool)] == []


def is_called(tool: str) -> bool:
    callers = [
        ROOT / "Makefile",
        ROOT / ".ci/run",
        ROOT / "CONTRIBUTING.md",
        *ROOT.glob("tests/*/*.py"),
        *(path for path in SCRIPTS if path.name != tool),
    ]
    name = re.escape(tool.removesuffix(".py"))
    calls = re.compile(rf"tools[/.]{name}\b|import .*\b{name}\b|from {name} |{re.escape(tool)}")
    return any(calls.search(path.read_text(encoding="utf-8")) for path in callers)


def variables(words: list[str]) -> set[str]:
    """Return the names of the variables on a command line of ansible-playbook."""
    given: set[str] = set()
    for option, value in zip(words, words[1:]):
        if option in ("-e", "--extra-vars"):
            given.update(
                json.loads(value) if value.startswith("{") else re.findall(r"(?:^| )(\w+)=", value)
            )
    return given


def takes(playbook: str) -> set[str]:
    """Return the variables that a playbook of the collection or of a page takes."""
    if playbook.startswith("infrastructure.services."):
        return taken(playbook.rpartition(".")[2])
    text = FILES.get(playbook, "" if playbook != "fleet.yml" else FLEET)
    return ROLE if FLEET in text else set(re.findall(r"\{\{ (\w+)", text))


def playbooks(words: list[str]) -> list[str]:
    return [
        word
        for word in words[1:]
        if re.fullmatch(r"infrastructure\.services\.\w+|\w+\.yml", word)
        and words[words.index(word) - 1] not in ("-i", "-e")
    ]


WITH_VARIABLES = [
    command
    for command in COMMANDS
    if re.search(r"ansible-playbook .* (?:-e|--extra-vars) ", command.text)
]


def test_playbooks_take_the_variables_of_the_commands():
    assert len(WITH_VARIABLES) > 50
    wrong = {}
    for command in WITH_VARIABLES:
        words = shlex.split(command.text)
        given, run = variables(words), playbooks(words)
        if not given or not run or given - set().union(*map(takes, run)):
            wrong[f"{command.page}: {command.text}"] = given
    assert wrong == {}


EVERY = set().union(ROLE, *map(taken, PLAYBOOKS))
TEXTS = [
    *PAGES,
    *PIPELINES,
    *SCRIPTS,
    *ROOT.glob("playbooks/*/*.yml"),
    *ROOT.glob("roles/*/*/*.yml"),
    *ROOT.glob("plugins/**/*.py"),
    *ROOT.glob("extensions/**/*.md"),
]


def test_what_a_text_tells_to_set_is_a_variable():
    """Messages and sentences too, which need not have a whole command."""
    found = {path.relative_to(ROOT).as_posix(): unknown_variables(path) for path in TEXTS}
    assert {file: names for file, names in found.items() if names} == {}


def unknown_variables(path: Path) -> set[str]:
    """Return the variables that a text tells to set, and that the playbook does not take."""
    text = path.read_text(encoding="utf-8")
    named = set(re.findall(r"(?<!\S)[`'\"(]*-e '?\{?\"?(\w+)[=\"]", text))
    unknown = named - EVERY
    for playbook, given in re.findall(r"infrastructure\.services\.(\w+)((?: -e \w+=\S*)+)", text):
        unknown |= set(re.findall(r"-e (\w+)=", given)) - taken(playbook)
    return unknown


def test_the_command_of_contributors_runs():
    (command,) = {each.text for each in COMMANDS if "bin/pytest tests/unit" in each.text}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *shlex.split(command)[1:]],
        cwd=ROOT,
        check=False,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"\d+ passed", done.stdout)
