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
}
