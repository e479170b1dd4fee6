"""What a process that serves many asks of the system and of Python."""

import gc
import resource

_WANTED = 1 << 20  # more than any worker can serve; a hard limit of "unlimited" is not taken at its word
# What a first look goes through takes 3 ms, and so much that nobody holds any more may be there until the next one.
_THRESHOLDS = (10_000, 100, 100)


def prepare() -> None:
    raise_limit()
    calm_collector()


def raise_limit() -> None:
    """Of open files, to what the operator allows: it is low for programs that use select(), which we do not."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED if hard == resource.RLIM_INFINITY else min(hard, _WANTED)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def calm_collector() -> None:
    """What is here now stays. Of thousands of held requests the collector would go through all, again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
