"""Takes docs/docsite/rst/report.png of the page that the program makes: `make picture`, in
Chromium.

picture.sha256 keeps what page it was taken of, so that tests/unit can tell without a browser when
it has changed.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PICTURE, TAKEN_OF = ROOT / "docs/docsite/rst/report.png", ROOT / "tests/page/picture.sha256"
WIDTH, HEIGHT = 960, 1160


def taken_of() -> tuple[str, str]:
    """The page, and its digest."""
    from support.pages import fleet, page_of  # noqa: PLC0415  needs tests on sys.path

    page = page_of(fleet())
    return page, hashlib.sha256(page.encode()).hexdigest()


def main() -> None:
    """Take the picture."""
    sys.path.insert(0, str(ROOT / "tests"))
    page, digest = taken_of()
    from page.conftest import launched  # noqa: PLC0415  needs tests on sys.path

    with launched() as browser:
        opened = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        opened.set_content(page)
        opened.screenshot(path=PICTURE)
    license_line, *_others = TAKEN_OF.read_text(encoding="utf-8").splitlines()
    TAKEN_OF.write_text(f"{license_line}\n{digest}\n", encoding="utf-8")
    print(f"{os.path.relpath(PICTURE)}: {PICTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
