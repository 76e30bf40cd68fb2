"""The structure of the code, read from its syntax: one-way imports, named errors."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Callable, Iterable, Iterator

from tools.measure import code_lines

ROOT = Path(__file__).resolve().parents[2]
COLLECTION = "ansible_collections.infrastructure.services."
UTILS = "plugins/module_utils/"

# Lowest first: a folder imports only from itself and those before it, and there are no import
# cycles.
LAYERS = ("", "_http/", "_call/", "_resources/", "_task/", "_list/")

# What is above module_utils, and the directories that it may import from.
ABOVE = {
    "plugins/doc_fragments/": (),
    "plugins/modules/": (UTILS,),
    "plugins/plugin_utils/_ledger/": (UTILS, "plugins/plugin_utils/_ledger/"),
    "plugins/plugin_utils/_csv.py": (UTILS, "plugins/plugin_utils/_ledger/"),
    "plugins/plugin_utils/_screen/": (
        UTILS,
        "plugins/plugin_utils/_ledger/",
        "plugins/plugin_utils/_screen/",
    ),
    "plugins/plugin_utils/_run/": (UTILS, "plugins/plugin_utils/"),
    "plugins/action/": (UTILS, "plugins/plugin_utils/"),
    "plugins/filter/": (UTILS, "plugins/plugin_utils/"),
    "plugins/inventory/": (UTILS, "plugins/plugin_utils/"),
}

# The libraries that only `_http` may import.
NETWORK = {"requests", "urllib3", "socket", "http"}
LONGEST_MODULE = 40  # lines of code in a module, which is its documentation and a hand-over

PLUGINS = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("plugins/**/*.py"))
EMULATOR = sorted(
    path.relative_to(ROOT).as_posix() for path in ROOT.glob("extensions/emulator/**/*.py")
)
LOWER = [file for file in PLUGINS if file.startswith(UTILS)]
MODULES = [file for file in PLUGINS if file.startswith("plugins/modules/")]

# They run in, or hand lines to, the process that starts workers.
DISPLAYING = {"plugins/inventory/ledger.py", "plugins/plugin_utils/_run/workers.py"}


@cache
def parse(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text(encoding="utf-8"))


def imported(file: str) -> Iterator[str]:
    """Yield the dotted names that a file imports; those of the collection relative to its root."""
    package = file.split("/")[:-1]
    for node in ast.walk(parse(file)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            names = [
                ".".join([*base, *filter(None, [node.module]), alias.name]) for alias in node.names
            ]
        else:
            continue
        yield from (name.removeprefix(COLLECTION) for name in names)


def libraries(file: str) -> set[str]:
    """Return the top-level packages that a file imports."""
    return {name.split(".")[0] for name in imported(file)}


@cache
def own(file: str) -> set[str]:
    """Return the files of the collection that a file imports."""
    names = [name.split(".") for name in imported(file)]
    candidates = {
        "/".join(parts[:end]) + ".py" for parts in names for end in range(1, len(parts) + 1)
    }
    return {path for path in candidates if (ROOT / path).is_file()}


def level(file: str) -> int:
    """Return the layer of a file of module_utils."""
    return LAYERS.index(
        file.removeprefix(UTILS).rpartition("/")[0].strip("/") and f"{file.split('/')[2]}/"
    )


def broken(rule: Callable[[str], object], files: Iterable[str]) -> dict[str, object]:
    """Return what a rule finds in each file that breaks it."""
    found = {file: rule(file) for file in files}
    return {file: what for file, what in found.items() if what}


def test_code_above_module_utils_imports_only_from_below():
    def from_elsewhere(file: str) -> set[str]:
        allowed = next(below for kind, below in ABOVE.items() if file.startswith(kind))
        return {other for other in own(file) if not other.startswith(allowed)}

    assert broken(from_elsewhere, [file for file in PLUGINS if file not in LOWER]) == {}


def test_imports_go_down():
    def from_above(file: str) -> set[str]:
        return {
            other
            for other in own(file)
            if not other.startswith(UTILS) or level(other) > level(file)
        }

    assert broken(from_above, LOWER) == {}


def test_there_are_no_import_cycles():
    def is_in_cycle(file: str) -> bool:
        reached, left = set(), {file}
        while left:
            left = {other for name in left for other in own(name)} - reached
            reached |= left
        return file in reached

    assert broken(is_in_cycle, PLUGINS) == {}


def test_module_utils_import_from_ansible_only_what_is_sent_to_a_target():
    def from_controller(file: str) -> list[str]:
        from_ansible = [name for name in imported(file) if name.split(".")[0] == "ansible"]
        return [name for name in from_ansible if not name.startswith("ansible.module_utils.")]

    assert broken(from_controller, LOWER) == {}


def test_only_one_layer_knows_about_the_network():
    above = [file for file in LOWER if not file.startswith(f"{UTILS}_http/")]
    assert broken(lambda file: libraries(file) & NETWORK, above) == {}


def test_only_the_first_process_displays():
    """What a worker has Ansible display ends the thread that receives results once nobody reads it."""

    def displayed(file: str) -> set[str]:
        called = {
            node.func.attr
            for node in ast.walk(parse(file))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        }
        return called & {"display", "warning", "deprecated", "v", "vv", "vvv"}

    assert broken(displayed, [file for file in PLUGINS if file not in DISPLAYING]) == {}


def test_a_module_is_documentation_and_a_hand_over():
    """A module imports its front and its own specification."""

    def more(file: str) -> object:
        hands_over_to = {Path(other).stem for other in own(file)} - {"lists"}
        specification = "api_request" if "api_request" in hands_over_to else "specs"
        is_long = len(code_lines(ROOT / file)) > LONGEST_MODULE
        return hands_over_to ^ {"module", specification} or is_long

    assert broken(more, MODULES) == {}


def test_the_emulator_imports_nothing_that_it_is_used_to_test():
    tested = {"ansible", "ansible_collections", "plugins"}
    assert broken(lambda file: libraries(file) & tested, EMULATOR) == {}
