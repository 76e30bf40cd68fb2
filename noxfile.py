# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything that a contributor or a build server runs: `.venv/bin/nox --list` shows the sessions.

`make NAME` runs them; `.venv/bin/nox -s NAME -- ARGUMENTS` passes arguments on. Sessions without an
environment of their own use `.venv`, which the Makefile fills from tests/requirements.txt.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import antsibull_nox
import nox
from antsibull_nox.sessions.collections import prepare_collections

ROOT = Path(__file__).parent
BUILD = ROOT / ".build"
LOGS = BUILD / "logs"
COLLECTIONS = BUILD / "collections"
COLLECTION = "ansible_collections/infrastructure/services"
SOURCES = "https://github.com/ansible-collections/infrastructure.services/blob/main/"
# Each ansible-core with its Python. The first has the oldest Python, the last the newest.
CORES = {
    "2.16": ("2.16.19", "3.10"),
    "2.17": ("2.17.14", "3.12"),
    "2.18": ("2.18.19", "3.13"),
    "2.19": ("2.19.14", "3.11"),
    "2.20": ("2.20.10", "3.12"),
    "2.21": ("2.21.5", "3.12"),
    "2.22": ("2.22.0rc1", "3.13"),
}
OLDEST_TARGET = "3.9"  # the oldest Python of modules
USUAL = ("2.16", "2.19", "2.22")  # for each change; weekly.yml runs the others
# The core of .venv.
(OURS,) = [core for core, (release, _python) in CORES.items() if release == version("ansible-core")]
# The tests that depend on ansible-core.
OF_CORE = (
    *("tests/crossing", "tests/integration", "tests/many"),
    *("tests/security/test_canary.py", "tests/security/test_templates.py"),
    *("tests/unit/plugins/inventory", "tests/unit/plugins/module_utils/_task"),
    "tests/unit/plugins/plugin_utils/_run",
)
OF_LIBRARIES = ("tests/faults", "tests/tls", "tests/tokens")
# The oldest requests and urllib3, which the oldest core is tested with; the others have the newest.
OLDEST_LIBRARIES = ("requests==2.31.0", "urllib3==1.26.20")
# What a quick look leaves out, because it takes long or lint finds almost all of it.
SLOW_SANITY = ("changelog", "compile", "import", "pep8", "pylint", "yamllint")
# A worker more than cores, since much of the time is waiting; the tests of a file share a set-up.
WORKERS = str((os.cpu_count() or 2) + 1)
PARALLEL = ("-n", WORKERS, "--dist", "loadfile", "--no-loadscope-reorder")

nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["test"]
antsibull_nox.load_antsibull_nox_toml()


def shield() -> None:
    """Remove what the caller's environment could change, and name the places that tools share."""
    for name in list(os.environ):
        if name.startswith(("ANSIBLE_", "INFRASTRUCTURE_SERVICES_", "MOLECULE_", "PYTHONDONT")):
            del os.environ[name]  # without bytecode, each process would compile what it imports
    BUILD.mkdir(exist_ok=True)
    (BUILD / "ansible.cfg").touch()
    os.environ |= {
        "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
        "ANSIBLE_CONFIG": str(BUILD / "ansible.cfg"),
        "ANSIBLE_HOME": str(BUILD / "home"),
        "LC_ALL": "C.UTF-8",
        "PATH": f"{ROOT / '.venv/bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPYCACHEPREFIX": str(BUILD / "pycache"),
    }
    if shutil.which("pyenv"):  # ansible-test calls python3.9 and others, which its shims refuse
        root = Path(subprocess.check_output(["pyenv", "root"], text=True).strip())
        paths = [path for path in os.environ["PATH"].split(os.pathsep) if "shims" not in path]
        os.environ["PATH"] = os.pathsep.join([*paths, *map(str, root.glob("versions/*/bin"))])


shield()


def install_artifact(session: nox.Session) -> None:
    """Build and install the collection as a user does, unless the session that called us has."""
    if "TEST_COLLECTIONS" in os.environ:
        return
    shutil.rmtree(COLLECTIONS, ignore_errors=True)
    shutil.rmtree(BUILD / "artifact", ignore_errors=True)
    galaxy = ("ansible-galaxy", "collection")
    quiet = {"silent": True, "external": True}
    session.run(*galaxy, "build", "--output-path", str(BUILD / "artifact"), **quiet)
    (artifact,) = (BUILD / "artifact").glob("*.tar.gz")
    place = ("--collections-path", str(COLLECTIONS))
    session.run(*galaxy, "install", "--no-deps", "--offline", *place, str(artifact), **quiet)
    os.environ["TEST_COLLECTIONS"] = str(COLLECTIONS)


def run_logged(line: str) -> bool:
    """Run a session, `NAME [ARGUMENTS]`, with its output in a file; print how it ended."""
    name, *arguments = shlex.split(line)
    log, start = LOGS / f"{name}.log", time.monotonic()
    nox_line = [sys.executable, "-m", "nox", "--no-color", "-s", name, "--", *arguments]
    plain = {**os.environ, "NO_COLOR": "1"}
    with log.open("w", encoding="utf-8") as file:
        status = subprocess.run(
            nox_line, env=plain, stdout=file, stderr=file, check=False
        ).returncode
    seconds, text = time.monotonic() - start, log.read_text(encoding="utf-8")
    closing = re.findall(
        r"^=+ (.*(?:passed|failed|error).*) =+$|^nox > (.* skipped.*)$", text, re.M
    )
    words = [f"{name:12}{'FAILED' if status else 'passed'} in {seconds:3.0f} s"]
    print(*words, log.relative_to(ROOT), *map("".join, closing), sep=", ", flush=True)
    return status == 0


def run_two_at_a_time(session: nox.Session, *lines: str) -> None:
    """Run sessions; show the end of the output of those that fail, and how to repeat them."""
    install_artifact(session)
    LOGS.mkdir(exist_ok=True)
    with ThreadPoolExecutor(max_workers=2) as pool:
        failed = [line for line, passed in zip(lines, pool.map(run_logged, lines)) if not passed]
    for line in failed:
        name, _space, arguments = line.partition(" ")
        if name.startswith(("tests", "matrix")):
            arguments += " --last-failed"
        text = (LOGS / f"{name}.log").read_text(encoding="utf-8")
        print(f"\n--- {name}", *text.splitlines()[-60:], sep="\n")
        print(f"To repeat it: .venv/bin/nox -s {name} -- {arguments.strip()}")
    if failed:
        session.error(f"{len(failed)} of {len(lines)} failed")


@nox.session(python=False)
def test(session: nox.Session) -> None:
    """Run every test that a contributor needs."""
    skipped = " ".join(f"--skip-test {name}" for name in SLOW_SANITY)
    run_two_at_a_time(session, "tests", "lint", f"sanity-{OURS} {skipped}")


@nox.session(python=False)
def ci(session: nox.Session) -> None:
    """Run what a build server runs for each change."""
    # On a busy server a test of time may lose once: it is run again, and the summary names it.
    os.environ["PYTEST_ADDOPTS"] = "--reruns 1 --reruns-delay 2 -rfER"
    matrices = [f"matrix-{core}" for core in USUAL if core != OURS]
    others = ("sanity", "lint", "molecule", "docs", "certify", "extra-checks")
    run_two_at_a_time(session, *matrices, "tests -m 'not stress'", *others)


@nox.session(python=False)
def matrix(session: nox.Session) -> None:
    """Run the tests that depend on ansible-core on the usual cores, or on those that are given."""
    run_two_at_a_time(session, *(f"matrix-{core}" for core in session.posargs or USUAL))


@nox.session(python=False)
def sanity(session: nox.Session) -> None:
    """Run ansible-test sanity on the usual cores, or on those that are given."""
    for core in session.posargs or USUAL:
        session.notify(f"sanity-{core}", posargs=[])


@nox.session(python=False)
def artifact(session: nox.Session) -> None:
    """Build the collection, and install it into .build/collections."""
    install_artifact(session)


@nox.session(python=False)
def tests(session: nox.Session) -> None:
    """Run the tests, or those that are given; arguments are those of pytest."""
    install_artifact(session)
    session.run("pytest", *PARALLEL, "--ignore=tests/page", *session.posargs)


@nox.session(python=False)
def types(session: nox.Session) -> None:
    """Check the types of plugins and emulator, under the path by which the code imports itself."""
    tree = BUILD / "types" / COLLECTION
    tree.parent.mkdir(parents=True, exist_ok=True)
    tree.unlink(missing_ok=True)
    tree.symlink_to(ROOT)
    parts = [f"{COLLECTION}/{part}" for part in ("plugins", "extensions/emulator")]
    with session.chdir(BUILD / "types"):
        session.run("mypy", "--config-file", str(ROOT / "pyproject.toml"), *parts)


LINTERS = (
    "ruff format --check .",
    "ruff check .",
    "nox --no-color -s types",
    "python tests/tools/measure.py --trace=lost --trace=list",
    "shellcheck .ci/run tests/tools/demo",
    "antsibull-changelog lint",
    (
        "antsibull-docs lint-collection-docs --plugin-docs --check-extra-docs-refs"
        " --validate-collection-refs self --disallow-unknown-collection-refs ."
    ),
    "reuse lint --lines",
    "zizmor --offline --no-progress --pedantic .github docs/ci/github.yml",
    (
        "check-jsonschema --builtin-schema vendor.github-workflows docs/ci/github.yml"
        " .github/workflows/ci.yml .github/workflows/release.yml .github/workflows/weekly.yml"
    ),
    (
        "check-jsonschema --builtin-schema vendor.gitlab-ci --data-transform gitlab-ci"
        " docs/ci/gitlab-ci.yml"
    ),
    "ansible-lint --offline --strict --profile production",
)


def run_each(session: nox.Session, *lines: str) -> None:
    """Run commands, each although one before it failed; then fail with the names of those."""
    failed = []
    for line in lines:
        try:
            session.run(*line.split())
        except nox.command.CommandFailed:
            failed.append(line)
    if failed:
        session.error("\n".join(["failed:", *failed]))


@nox.session(python=False)
def lint(session: nox.Session) -> None:
    """Run the linters that ansible-test does not include, and measure the size of the code."""
    install_artifact(session)
    run_each(session, *LINTERS)


def copy_for_ansible_test(session: nox.Session) -> Path:
    """Copy the tracked files to where ansible-test expects them, and bring what it downloads: a
    script that installs pip, in place of which the pip that is part of Python does.
    """
    module = "lib/python*/site-packages/ansible_test/_internal/python_requirements.py"
    (found,) = Path(session.virtualenv.location).glob(module)
    cache = Path.home() / ".ansible/test/cache"
    cache.mkdir(parents=True, exist_ok=True)
    for release in re.findall(r"pip='([\d.]+)'", found.read_text(encoding="utf-8")):
        script = cache / f"get_pip_{release.replace('.', '_')}.py"
        if not script.exists():
            script.write_text("import ensurepip; ensurepip.bootstrap(upgrade=True)\n")
    return prepare_collections(
        session, install_in_site_packages=False, install_out_of_tree=True
    ).current_path


def add_core(core: str) -> None:
    """Add the sessions `matrix-CORE` and `sanity-CORE`."""
    release, python = CORES[core]

    @nox.session(name=f"matrix-{core}", python=python)
    def matrix(session: nox.Session) -> None:
        """Run the tests that depend on ansible-core; modules on a target run on the oldest Python."""
        install_artifact(session)
        libraries, more = (OLDEST_LIBRARIES, OF_LIBRARIES) if core == "2.16" else ((), ())
        pins = ("-r", "tests/requirements-pytest.txt", f"ansible-core=={release}", *libraries)
        session.install(*pins)
        if oldest := shutil.which(f"python{OLDEST_TARGET}"):
            target = BUILD / f"target-{core}"
            python_of_target = str(target / "bin/python")
            session.run(oldest, "-m", "venv", str(target), external=True)
            pip = (python_of_target, "-m", "pip", "install", "--quiet", "-r", "requirements.txt")
            session.run(*pip, *libraries, external=True)
            session.env["TEST_TARGET_PYTHON"] = python_of_target
        options = ("-o", f"cache_dir={BUILD / f'pytest-{core}'}", *PARALLEL, "-m", "not stress")
        session.run("pytest", *options, *OF_CORE, *more, *session.posargs)

    # Cores before 2.18 want an empty __init__.py in module_utils; ours have a docstring. The pylint
    # of the release candidate needs a source archive that no registry has.
    left_out = {"2.16": "empty-init", "2.17": "empty-init", "2.22": "pylint"}.get(core)
    skipped = ("--skip-test", left_out) if left_out else ()

    @nox.session(name=f"sanity-{core}", python=python)
    def sanity(session: nox.Session) -> None:
        """Run ansible-test sanity; arguments are its own."""
        session.install(f"ansible-core=={release}")
        with session.chdir(copy_for_ansible_test(session)):
            session.run("ansible-test", "sanity", "--color", "no", *skipped, *session.posargs)


for _core in CORES:
    add_core(_core)


ROLE = """
- name: Create a virtual machine
  infrastructure.services.compute_virtual_machine:
    name: web01
- name: Let the role log in
  infrastructure.services.cassandra_application_role:
    id: role-1
    attributes:
      login: true
"""


@nox.session(python=False)
def molecule(session: nox.Session) -> None:
    """Run the molecule scenarios, and the skeleton in a new role, as a user gets it."""
    install_artifact(session)
    session.run("molecule", "test", "--all")
    with tempfile.TemporaryDirectory() as directory, session.chdir(directory):
        session.run("ansible-galaxy", "role", "init", "my_role")
        Path("my_role/tasks/main.yml").write_text(ROLE, encoding="utf-8")
        skeleton = COLLECTIONS / COLLECTION / "extensions/skeleton/molecule"
        shutil.copytree(skeleton, "my_role/molecule")
        with session.chdir("my_role"):
            session.run("molecule", "test")


@nox.session
def certify(session: nox.Session) -> None:
    """Import the artifact as Galaxy and Automation Hub do; a warning is an error."""
    install_artifact(session)
    session.install("-r", "tests/requirements-importer.txt")
    (artifact,) = (BUILD / "artifact").glob("*.tar.gz")
    settings = {"GALAXY_IMPORTER_CONFIG": str(ROOT / "tests/galaxy-importer.cfg")}
    importer = ("python", "-m", "galaxy_importer.main", str(artifact))
    with session.chdir(BUILD):  # where it writes its result
        log = session.run(*importer, env=settings, silent=True, stderr=subprocess.STDOUT)
    session.log(log)
    if re.search("WARNING|ERROR", log) or "Importer processing completed successfully" not in log:
        session.error("the importer has found something to fix")


def on_the_site(guide: str) -> str:
    """Return a guide with links to pages of the site, or else to the repository, and with an index
    of the statuses in its table, which the search would not find otherwise.
    """
    guide = re.sub(r"`([^`<]+?)\s+<(\w+)\.rst>`__", r":doc:`\1 <\2>`", guide)
    guide = re.sub(r"<\.\./\.\./\.\./([^>]+)>`__", rf"<{SOURCES}\1>`__", guide)
    guide = re.sub(r"<\.\./\.\./([^>]+)>`__", rf"<{SOURCES}docs/\1>`__", guide)
    statuses = ", ".join(re.findall(r"\b[3-5]\d\d\b", guide.partition(".. table start\n")[2]))
    return guide.replace(".. table start\n", f".. index:: {statuses}\n")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site in .build/docs/html; a warning is an error."""
    install_artifact(session)
    session.install("-r", "tests/requirements-docs.txt")
    site = BUILD / "docs"
    shutil.rmtree(site, ignore_errors=True)
    site.mkdir(mode=0o755)  # antsibull-docs insists that nobody else can write there
    common = ("--use-current", "--squash-hierarchy", "--fail-on-error", "infrastructure.services")
    title = ("--project", "infrastructure.services", "--title", "infrastructure.services")
    init = ("sphinx-init", "--lenient", "--dest-dir", str(site))
    session.run("antsibull-docs", *init, *title, *common)
    session.run("antsibull-docs", "collection", "--dest-dir", str(site / "rst"), *common)
    guides = ROOT / "docs/docsite/rst"
    pages = shutil.ignore_patterns("*.rst")
    shutil.copytree(guides, site / "rst/docsite", ignore=pages, dirs_exist_ok=True)
    for page in (site / "rst/docsite").glob("*.rst"):
        page.write_text(on_the_site(page.read_text(encoding="utf-8")), encoding="utf-8")
    # Without intersphinx, which needs a network, references to Ansible's own pages stay text; lint
    # has checked our own.
    settings = ("-D", "extensions=sphinx_antsibull_ext", "-D", "suppress_warnings=ref.ref")
    options = ("--quiet", "--fail-on-warning", "--keep-going", "-c", str(site), *settings)
    session.run("sphinx-build", *options, str(site / "rst"), str(site / "html"))


@nox.session(python=False)
def stress(session: nox.Session) -> None:
    """Run the tests that take longer: sweeps, thousands of generated answers, crash loops."""
    install_artifact(session)
    for name in ("pgbouncer", "strace"):
        if not shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin"):
            session.error(f"{name} is missing, on Debian: apt-get install pgbouncer strace")
    parallel = ("-n", "2", "--dist", "worksteal", "--ignore=tests/page")
    session.run("pytest", "-m", "stress", *(session.posargs or parallel))


@nox.session(python=False)
def bench(session: nox.Session) -> None:
    """Measure the speed against ansible-core's own modules and mitogen, and the ledger's cost."""
    install_artifact(session)
    mitogen = "pip install --quiet --target .build/mitogen -r tests/requirements-bench.txt"
    names = ("loops.py", "many.py", "safety.py")
    run_each(session, mitogen, *(f"python tests/benchmark/{name}" for name in names))


@nox.session
def mutation(session: nox.Session) -> None:
    """Change plugins in one place at a time, and count the changes that no test notices."""
    session.install("-r", "tests/requirements-mutation.txt")
    session.run("python", "tests/tools/mutation.py", *session.posargs)
