# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plot the measurements of loops.py: python tests/benchmark/chart.py loops.json loops.svg."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from matplotlib.figure import Figure


def draw(measured: dict[str, dict[str, float]], file: str) -> None:
    """Plot the seconds of each pair in a separate chart."""
    figure = Figure(figsize=(3 * len(measured), 3), layout="constrained")
    for axes, (work, seconds) in zip(
        figure.subplots(1, len(measured), squeeze=False)[0], measured.items()
    ):
        axes.bar(list(seconds), list(seconds.values()), color=["tab:blue", "tab:gray"])
        axes.set_title(work, fontsize=8)
        axes.set_ylabel("seconds")
    figure.savefig(file)


if __name__ == "__main__":
    draw(json.loads(Path(sys.argv[1]).read_text("utf-8")), sys.argv[2])
