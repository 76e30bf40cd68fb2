"""Makes the checkout importable as the collection, and shields the tests from the caller's
environment.
"""

from __future__ import annotations

import gc
import os
import signal

import pytest
from hypothesis import HealthCheck, settings
from support.checkout import CHECKOUT

__all__ = ["CHECKOUT"]

pytest_plugins = ["support.fixtures"]

# Nothing set in the caller's shell may affect the result of a test: under nohup SIGHUP would be
# ignored, and in the background of a script SIGINT.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
_DECIDING = ("ANSIBLE_", "INFRASTRUCTURE_SERVICES_", "SSL_CERT_")
for _name in list(os.environ):
    if _name.startswith(_DECIDING) or _name.lower().endswith(("_proxy", "_ca_bundle")):
        del os.environ[_name]

# With several workers, long files begin first, so that none is left at the end.
_LONGEST_FIRST = (
    "story",
    "crossing",
    "many",
    "ledger",
    "integration",
    "docs",
    "ecosystem",
    "security",
)

# No deadline: beside other tests an example may take long. `make stress` draws more examples.
for _profile, _examples in (("test", 40), ("stress", 1000)):
    settings.register_profile(
        _profile,
        max_examples=_examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )

# The thousands of tests stay in memory: to search them for garbage takes a tenth of the time.
gc.set_threshold(50_000)


def pytest_collection_finish() -> None:
    """Never search what has been collected; a forked process then copies none of it either."""
    gc.freeze()


def pytest_configure(config: pytest.Config) -> None:
    """Choose how many examples hypothesis draws."""
    settings.load_profile("stress" if config.option.markexpr == "stress" else "test")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order the suites by how long their files take; mark those that start Ansible; run the tests
    that hypothesis feeds in `make stress` too.
    """
    for item in items:
        if "collections" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.ansible)
    order = {name: number for number, name in enumerate(_LONGEST_FIRST)}
    items.sort(key=lambda item: order.get(item.nodeid.split("/")[1], len(order)))
    for item in items if config.option.markexpr == "stress" else ():
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.stress)
