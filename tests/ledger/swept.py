# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many runs had a call that failed, or at which the process was killed, as `make stress`
counted it.
"""

from __future__ import annotations

SWEPT = {
    "a creation, new ledger": {
        "openat": 64,
        "pread64": 15,
        "pwrite64": 153,
        "fdatasync": 51,
        "fcntl": 152,
        "newfstatat": 122,
        "unlink": 4,
    },
    "a creation, existing ledger": {
        "openat": 52,
        "pread64": 19,
        "pwrite64": 108,
        "fdatasync": 24,
        "fcntl": 120,
        "newfstatat": 108,
        "unlink": 2,
    },
    "a move": {
        "openat": 120,
        "pread64": 54,
        "pwrite64": 177,
        "fdatasync": 87,
        "fcntl": 394,
        "newfstatat": 390,
        "unlink": 6,
    },
    "a move from file to file, killed": {"pwrite64": 59, "fdatasync": 29, "unlink": 6},
    "a move from file to server, killed": {
        "sendto": 39,
        "pwrite64": 16,
        "fdatasync": 10,
        "unlink": 2,
    },
    "a move from server to file, killed": {
        "sendto": 46,
        "pwrite64": 43,
        "fdatasync": 19,
        "unlink": 4,
    },
    "a move from server to server, killed": {"sendto": 84},
    "a report": {"openat": 496, "write": 9, "unlinkat": 6, "renameat": 9},
    "a list of a playbook": {"fdatasync": 18, "pwrite64": 87, "renameat": 3},
}
