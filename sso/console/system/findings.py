"""The findings of ``sso doctor`` for the console. The checks take a second or two, so they run in a thread."""

from collections.abc import Callable
from typing import Any

import trio

MAX_AGE_S = 30.0

Findings = list[dict[str, Any]]


class InstallationFindings:
    def __init__(self, check: Callable[[], Findings]) -> None:
        self._check = check
        self._lock = trio.Lock()  # one check at a time, whatever the number of administrators
        self._found: Findings = []
        self._found_at = -MAX_AGE_S

    async def get(self) -> Findings:
        """Returns the findings, which are at most ``MAX_AGE_S`` old; failed checks first, then notes."""
        async with self._lock:
            if trio.current_time() - self._found_at >= MAX_AGE_S:
                found = await trio.to_thread.run_sync(self._check)
                self._found = sorted(found, key=lambda finding: (finding["good"], finding["warning"]))
                self._found_at = trio.current_time()
            return self._found
