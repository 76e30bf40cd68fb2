# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the examples from the guides in docs/docsite.

A code block with a caption is a file of that name. Any other yaml block is a list of tasks; tasks without a command
between them are run as one playbook. A line of a shell block is a command. A text block is the output of the last
command before it.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import NamedTuple

from antsibull_docutils.rst_code_finder import CodeBlockDirective, find_code_blocks, mark_antsibull_code_block

ROOT = Path(__file__).resolve().parents[2]
GUIDES = sorted((ROOT / "docs/docsite/rst").glob("*.rst"))


class Step(NamedTuple):
    """What to run, tasks or a command, and what must be in its output."""

    kind: str
    text: str
    output: str = ""


class Guide(NamedTuple):
    """The examples of a guide, in order."""

    files: dict[str, str]
    steps: list[Step]


class _CaptionedBlock(CodeBlockDirective):
    """A code block that keeps its caption."""

    def run(self):
        (literal,) = super().run()
        mark_antsibull_code_block(literal, language=self.arguments[0], content_offset=self.content_offset,
                                  other={"caption": self.options.get("caption")})
        return [literal]


def read(path: Path) -> Guide:
    """Return the examples of a guide; raise ValueError for a block of any other language."""
    guide = Guide({}, [])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)  # antsibull-docutils uses a deprecated docutils API
        blocks = list(find_code_blocks(path.read_text(encoding="utf-8"), path=path,
                                       extra_directives={"code-block": _CaptionedBlock}))
    for block in blocks:
        text = block.content.rstrip("\n") + "\n"
        caption = block.attributes["antsibull-other-caption"]
        if caption:
            guide.files[caption] = text
        elif block.language == "shell":
            guide.steps.extend(Step("command", line) for line in text.splitlines())
        elif block.language == "text":
            guide.steps[-1] = guide.steps[-1]._replace(output=text)
        elif block.language != "yaml+jinja":
            raise ValueError(f"{path.name}: a block of code in {block.language}")
        elif guide.steps and guide.steps[-1].kind == "tasks":
            guide.steps[-1] = Step("tasks", f"{guide.steps[-1].text}\n{text}")
        else:
            guide.steps.append(Step("tasks", text))
    return guide
