"""How much of the machine is ours."""

import os


def cores() -> int:
    """Of those that this process may use, which may be fewer than there are."""
    return len(os.sched_getaffinity(0))
