"""A host whose clock is wrong: ``Node(folder, settings | shifted(90))`` runs a server whose clock is 90 s ahead.

Only processes that are forked (kit/forked_program.py) know the setting. They replace the functions that read the clock
of the host, also in the modules that have imported them.
"""

import datetime
import sys
import time
from datetime import datetime as real_datetime
from typing import Any

SHIFT = "CLOCK_SHIFT_S"  # an environment variable


class _InstanceCheck(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, real_datetime)


_time, _time_ns = time.time, time.time_ns


def shifted(seconds: float) -> dict[str, str]:
    """Returns a setting for a server on a host whose clock is so far ahead."""
    return {SHIFT: str(seconds)}


def shift_clock(seconds: float) -> None:
    difference = datetime.timedelta(seconds=seconds)

    class ShiftedDatetime(real_datetime, metaclass=_InstanceCheck):
        __slots__ = ()

        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return real_datetime.now(tz) + difference

        @classmethod
        def utcnow(cls) -> Any:
            return real_datetime.now(datetime.UTC).replace(tzinfo=None) + difference

    def shifted_time() -> float:
        return _time() + seconds

    def shifted_time_ns() -> int:
        return _time_ns() + int(seconds * 1e9)

    pairs: list[tuple[object, object]] = [
        (real_datetime, ShiftedDatetime), (_time, shifted_time), (_time_ns, shifted_time_ns),
    ]  # fmt: skip
    for names in [vars(module) for name, module in sys.modules.items() if name != __name__]:
        for name, value in list(names.items()):
            for real, replacement in pairs:
                if value is real:
                    names[name] = replacement
