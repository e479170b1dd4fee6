"""How many files and sockets a process may have open."""

import resource

_WANTED = 1 << 20  # more than any worker can serve; a hard limit of "unlimited" is not taken at its word


def raise_limit() -> None:
    """To what the operator allows: the soft limit is low for programs that use select(), which we do not."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED if hard == resource.RLIM_INFINITY else min(hard, _WANTED)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
