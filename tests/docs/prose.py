# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Count the words of prose of the guides, and list their links.

PYTHONPATH=tests python -m docs.prose
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LABEL = "ansible_collections.infrastructure.services.docsite."
_COMMENT = re.compile(r"\A\.\.\n(?:  .*\n)+")
_CODE = re.compile(r"^( *)\.\. code-block::.*\n(?:\1 +\S.*\n|\s*\n)*", re.MULTILINE)
_DIRECTIVE = re.compile(r"^ *(?:\.\. (?!note|warning|tip).*|:[\w-]+:(?!`).*|[=-]+)$", re.MULTILINE)
_ROLE = re.compile(r":\w+:`(?:([^`<]*)\s<)?[^`]*`")
_LINK = re.compile(r"`([^`<]+)\s<[^`]*>`__")
_WORD = re.compile(r"[A-Za-z][\w'-]*")


def guides() -> dict[str, str]:
    """Return the text of each guide by its name."""
    return {
        path.stem: path.read_text(encoding="utf-8")
        for path in sorted((ROOT / "docs/docsite/rst").glob("*.rst"))
    }


def words(text: str) -> list[str]:
    """Return the words of a guide, without code, markup and the targets of links."""
    return _WORD.findall(prose(text))


def prose(text: str) -> str:
    """Return the sentences of a guide, without code, markup and the targets of links."""
    sentences = _DIRECTIVE.sub("", _CODE.sub("", _COMMENT.sub("", text)))
    return _LINK.sub(r"\1", _ROLE.sub(lambda role: role[1] or "link", sentences))


def links(text: str) -> set[str]:
    """Return the names of the guides that a guide links to."""
    return set(re.findall(rf"<?{re.escape(LABEL)}(\w+)>?`", text))


def main() -> None:
    texts = guides()
    for name, text in texts.items():
        links_in = sum(name in links(other) for key, other in texts.items() if key != name)
        print(
            f"{name:26}{len(words(text)):6} words, {len(links(text)):3} links out, {links_in:3} in"
        )
    print(f"{'all':26}{sum(len(words(text)) for text in texts.values()):6} words")


if __name__ == "__main__":
    main()
