"""Reads the examples from README.md and from the guides in docs/docsite.

A code block with a caption, or in Markdown one that starts with `# NAME.yml`, is a file of that
name. Any other yaml block is a list of tasks; tasks without a command between them are run as one
playbook. A line of a shell block is a command. A text block is the output of the last command
before it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml
from antsibull_docutils.rst_code_finder import (
    CodeBlockDirective,
    find_code_blocks,
    mark_antsibull_code_block,
)

ROOT = Path(__file__).resolve().parents[2]
GUIDES = sorted((ROOT / "docs/docsite/rst").glob("*.rst"))
_FENCED = re.compile(r"^```(\w+)\n(?:# ([\w/.-]+\.yml)\n)?(.*?)^```$", re.MULTILINE | re.DOTALL)


class Step(NamedTuple):
    """What to run, tasks or a command, and what must be in its output."""

    kind: str
    text: str
    output: str = ""


class Guide(NamedTuple):
    """The examples of a page, in order."""

    files: dict[str, str]
    steps: list[Step]


class Block(NamedTuple):
    """A block of code of a page."""

    language: str
    name: str | None  # of the file that it is
    text: str


class _CaptionedBlock(CodeBlockDirective):
    """A code block that keeps its caption."""

    def run(self):
        (literal,) = super().run()
        mark_antsibull_code_block(
            literal,
            language=self.arguments[0],
            content_offset=self.content_offset,
            other={"caption": self.options.get("caption")},
        )
        return [literal]


def in_order() -> list[Path]:
    """Return README.md and then the guides, in the order in which a newcomer reads them."""
    listed = yaml.safe_load((ROOT / "docs/docsite/extra-docs.yml").read_text(encoding="utf-8"))
    names = [name for section in listed["sections"] for name in section["toctree"]]
    return [ROOT / "README.md", *(ROOT / f"docs/docsite/rst/{name}.rst" for name in names)]


@cache  # parsing a page takes a tenth of a second, and each of xdist's workers asks often
def blocks(path: Path) -> tuple[Block, ...]:
    """Return the blocks of code of a page, except diagrams."""
    return tuple(_parse_blocks(path))


def _parse_blocks(path: Path) -> Iterator[Block]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield from (
            Block(language, name or None, code)
            for language, name, code in _FENCED.findall(text)
            if language != "mermaid"
        )
        return
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", PendingDeprecationWarning
        )  # antsibull-docutils uses a deprecated docutils API
        found = list(
            find_code_blocks(text, path=path, extra_directives={"code-block": _CaptionedBlock})
        )
    for block in found:
        language = block.language.removesuffix("+jinja")
        yield Block(
            language, block.attributes["antsibull-other-caption"], block.content.rstrip("\n") + "\n"
        )


def read(path: Path) -> Guide:
    """Return the examples of a page; raise ValueError for a block of any other language."""
    guide = Guide({}, [])
    for block in blocks(path):
        if block.name:
            guide.files[block.name] = block.text
        elif block.language == "shell":
            guide.steps.extend(Step("command", line) for line in block.text.splitlines())
        elif block.language == "text":
            guide.steps[-1] = guide.steps[-1]._replace(output=block.text)
        elif block.language != "yaml":
            raise ValueError(f"{path.name}: a block of code in {block.language}")
        elif guide.steps and guide.steps[-1].kind == "tasks":
            guide.steps[-1] = Step("tasks", f"{guide.steps[-1].text}\n{block.text}")
        else:
            guide.steps.append(Step("tasks", block.text))
    return guide
