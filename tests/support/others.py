"""Another user of this machine, to whom files belong."""

from __future__ import annotations

import os

import pytest

OTHER = 65534  # nobody, on most systems
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="root is needed to be two users")
