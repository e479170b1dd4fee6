"""What a process that serves many asks of the system and of Python."""

import gc
import resource

_WANTED = 1 << 20  # more than any worker can serve; a hard limit of "unlimited" is not taken at its word
# A first look takes a third of a millisecond, and what nobody holds any more is there until the next one. Further looks
# go through all requests that are under way: with thousands that are held, each would take long.
_THRESHOLDS = (1_000, 1_000, 100)


def tune_process() -> None:
    raise_open_file_limit()
    tune_garbage_collector()


def raise_open_file_limit() -> None:
    """Of open files, to what the operator allows: it is low for programs that use select(), which we do not."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED if hard == resource.RLIM_INFINITY else min(hard, _WANTED)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def tune_garbage_collector() -> None:
    """What is here now stays. Of thousands of held requests the collector would go through all, again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
