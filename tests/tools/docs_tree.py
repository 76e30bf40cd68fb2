"""Make one tree of the site that antsibull-docs generated: the home page on top, and the Markdown
pages included.

`python tests/tools/docs_tree.py SITE`; SITE is the directory that holds conf.py and rst.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
GUIDES = ROOT / "docs/docsite"
SOURCES = "https://github.com/ansible-collections/infrastructure.services/blob/main/"
# The pages that are kept as Markdown, so that they can also be read in the repository.
PAGES = {
    "reliability": "docs/reliability.md",
    "emulator": "extensions/emulator/README.md",
    "open_points": "docs/open_points.md",
    "security": "SECURITY.md",
    "changelog": "CHANGELOG.md",
}
# Where they are among the guides, by section: before them, and after them.
FIRST = {"Reference": ["../plugins"]}
LAST = {"Reference": ["security", "open_points", "reliability", "emulator", "changelog"]}
SETTINGS = """
extensions += ['myst_parser']
myst_heading_anchors = 3
html_static_path = ['_static']
html_css_files = ['docs.css']
"""
# Pages of Ansible's own documentation that antsibull-docs refers to by label, which Sphinx could
# only look up there.
ANSIBLE = "https://docs.ansible.com/ansible/latest/"
LABELS = {
    "action_plugins": "plugins/action.html",
    "ansible_configuration_settings": "reference_appendices/config.html",
    "common_return_values": "reference_appendices/common_return_values.html",
}
_REFERENCE = re.compile(r":ref:`(?:([^`<]+) <)?(\w+)>?`")
_VARIABLE = re.compile(r":envvar:`(\w+)`")
_TITLE = re.compile(r"(\A.*?)^[^\n]+\n=+\n", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)")
# A link of a guide, relative as GitHub reads it.
GUIDE_LINK = re.compile(r"`([^`<]+?)\s+<(?![a-z]+:)([^>]+)>`__")


def sections() -> dict[str, list[str]]:
    """Return the names of the guides in order by the title of their section, the home page first."""
    listed = yaml.safe_load((GUIDES / "extra-docs.yml").read_text(encoding="utf-8"))["sections"]
    return {section["title"]: section["toctree"] for section in listed}


def guides() -> list[str]:
    """Return the names of all guides in order."""
    return [name for names in sections().values() for name in names]


def converted(name: str) -> str:
    """Return a page as the site has it: links point to its pages, or else to the repository."""
    path = PAGES[name]
    names = {path: f"{name}.md" for name, path in PAGES.items()}
    names |= {f"docs/docsite/rst/{name}.rst": f"{name}.rst" for name in guides()}
    names["docs/docsite/rst/home.rst"] = "../index.rst"

    def target(link: re.Match) -> str:
        wanted = posixpath.normpath(posixpath.join(posixpath.dirname(path), link[1]))
        return f"]({names.get(wanted, SOURCES + wanted)}"

    text = (ROOT / path).read_text(encoding="utf-8")
    return _LINK.sub(target, text)


def guide(text: str) -> str:
    """Return a guide as the site has it: links point to its pages, or else to the repository."""
    pages = {f"docs/docsite/rst/{name}.rst": name for name in guides()}
    pages |= {path: name for name, path in PAGES.items()} | {"docs/docsite/rst/home.rst": "/index"}

    def link(found: re.Match) -> str:
        wanted = posixpath.normpath(f"docs/docsite/rst/{found[2]}")
        if wanted in pages:
            return f":doc:`{found[1]} <{pages[wanted]}>`"
        return f"`{found[1]} <{SOURCES}{wanted}>`__"

    table = re.search(r"(?<=^\.\. )table start\n.*", text, re.MULTILINE | re.DOTALL)
    if table:  # of statuses; the search of Sphinx finds a number only as an entry of the index
        codes = ", ".join(re.findall(r"\b[3-5]\d\d\b", table[0]))
        text = text.replace("table start\n", f"index:: {codes}\n")
    return GUIDE_LINK.sub(link, text)


def with_links_to_ansible(text: str) -> str:
    """Return a page with links in place of references to Ansible's own documentation, and with
    names in place of references to the index of variables.
    """

    def link(reference: re.Match) -> str:
        page = LABELS.get(reference[2])
        return (
            f"`{reference[1] or 'Ansible Configuration Settings'} <{ANSIBLE}{page}>`__"
            if page
            else reference[0]
        )

    return _REFERENCE.sub(link, _VARIABLE.sub(r"``\1``", text))


def toctree(title: str, guides_of_it: list[str]) -> str:
    """Return a table of contents of a section, which is shown only in the sidebar of each page."""
    pages = [
        *FIRST.get(title, []),
        *(name for name in guides_of_it if name != "home"),
        *LAST.get(title, []),
    ]
    paths = [posixpath.normpath(f"docsite/{page}") for page in pages]
    return "\n".join(
        [
            "",
            ".. toctree::",
            f"    :caption: {title}",
            "    :hidden:",
            "",
            *(f"    {path}" for path in paths),
            "",
        ]
    )


def main(site: Path) -> None:
    """Add settings and pages to the site, and put the home page where a site begins."""
    directory = site / "rst/docsite"
    for name in PAGES:
        (directory / f"{name}.md").write_text(converted(name), encoding="utf-8")
    (site / "_static").mkdir(exist_ok=True)
    shutil.copy(ROOT / "tests/tools/docs.css", site / "_static")
    for name in guides():
        page = directory / f"{name}.rst"
        page.write_text(guide(page.read_text(encoding="utf-8")), encoding="utf-8")
    for picture in (path for path in (GUIDES / "rst").iterdir() if path.suffix in (".svg", ".png")):
        shutil.copy(picture, directory)
    # An index of the variables that plugins declare, which is one of 17; the reference lists all.
    (site / "rst/environment_variables.rst").unlink()
    put_home_first(site / "rst")
    for page in (site / "rst").rglob("*.rst"):
        page.write_text(with_links_to_ansible(page.read_text(encoding="utf-8")), encoding="utf-8")
    with (site / "conf.py").open("a", encoding="utf-8") as settings:
        settings.write(SETTINGS)


def put_home_first(pages: Path) -> None:
    """Make the home page the index, and the index of antsibull-docs a page of its own, without the
    guides.
    """
    index, home = pages / "index.rst", pages / "docsite/home.rst"
    listed = index.read_text(encoding="utf-8")
    for title, names in sections().items():
        tree = "".join(f"    docsite/{name}\n" for name in names)
        heading = f"{title}\n{'-' * len(title)}\n\n.. toctree::\n    :maxdepth: 1\n\n"
        listed = listed.replace(f"{heading}{tree}", "")
    (pages / "plugins.rst").write_text(
        _TITLE.sub(r"\1Modules, plugins and role\n==========================\n", listed),
        encoding="utf-8",
    )
    text = home.read_text(encoding="utf-8").replace(".. image:: ", ".. image:: docsite/")
    text = re.sub(r"(:doc:`[^`<]+<)(?=\w)", r"\1docsite/", text)
    index.write_text(
        text + "".join(toctree(*section) for section in sections().items()), encoding="utf-8"
    )
    home.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
