# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Show where a worker spends its time in a loop of creates, and in the same loop of debug.

python tests/benchmark/worker.py [--items 1000] [--functions 15]
"""

from __future__ import annotations

import argparse
import pstats
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import loops

# The owner of the time, by the file that contains a function; the first match counts.
OWNERS = (
    ("this collection", re.compile(r"infrastructure/services/")),
    (
        "requests, urllib3, Python's HTTP",
        re.compile("/(requests|urllib3|idna)/|/(http|email|socket|ssl)[./]|_socket"),
    ),
    ("Ansible and Jinja", re.compile(r"/(ansible|jinja2)/")),
    ("the rest of Python", re.compile("")),
)


def profile(task: dict, items: int, server: loops.Server, directory: Path) -> pstats.Stats:
    """Return the figures of the worker that ran one task."""
    stats, task = directory / "stats", {"name": "it", **task, **loops.over(items)}
    loops.play(
        [task],
        1,
        directory,
        ANSIBLE_CALLBACKS_ENABLED="stopwatch,profiler",
        PROFILER_FILE=str(stats),
        **loops.access(server),
    )
    return pstats.Stats(str(stats))


def by_owner(stats: pstats.Stats) -> dict[str, float]:
    """Return the seconds spent in the functions of each owner, not counting what they call."""
    seconds = dict.fromkeys([owner for owner, dummy in OWNERS], 0.0)
    for (file, _line, name), (_calls, _primitive, own, _together, _callers) in stats.stats.items():
        where = name if file == "~" else file
        seconds[next(owner for owner, pattern in OWNERS if pattern.search(where))] += own
    return seconds


def main() -> None:
    """Print milliseconds per item by owner, and the collection's most expensive functions."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--functions", type=int, default=15, help="how many functions to show")
    given = parser.parse_args()
    with loops.Server() as server, tempfile.TemporaryDirectory() as scratch:
        ours, debug = (
            profile(task, given.items, server, Path(scratch))
            for task in (loops.create(loops.NAME), loops.debug(loops.NAME))
        )
    print(f"{'milliseconds per item, under the profiler':44}{'ours':>8}{'debug':>8}")
    of_ours, of_debug = by_owner(ours), by_owner(debug)
    for owner in of_ours:
        print(
            f"{owner:44}{of_ours[owner] / given.items * 1000:8.2f}{of_debug[owner] / given.items * 1000:8.2f}"
        )
    print(
        f"{'together':44}{ours.total_tt / given.items * 1000:8.2f}{debug.total_tt / given.items * 1000:8.2f}"
    )
    ours.sort_stats("cumulative").print_stats("infrastructure/services", given.functions)


if __name__ == "__main__":
    main()
