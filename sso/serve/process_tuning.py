"""Settings of the operating system and of Python for a process that serves many connections."""

import gc
import resource

_MAX_OPEN_FILES = 1 << 20  # more than a worker can use; a hard limit of "unlimited" is not taken literally
# A collection of the youngest generation takes one or two milliseconds. Older generations contain all requests in
# progress: with thousands of held ones, collecting them takes long, so that happens rarely.
_THRESHOLDS = (5_000, 1_000, 100)


def enable_garbage_collector() -> None:
    """Enables it, with thresholds at which it rarely collects the older generations."""
    gc.set_threshold(*_THRESHOLDS)
    gc.enable()


def tune_process() -> None:
    """Call it when the objects exist that the process keeps: they are excluded from garbage collection."""
    raise_open_file_limit()
    gc.freeze()  # without a collection, which would take a tenth of the start of a worker and find nothing


def raise_open_file_limit() -> None:
    """Raises the soft limit to the hard one. The default is low for programs that use select(), which we do not."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
