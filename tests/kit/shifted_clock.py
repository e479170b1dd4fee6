"""Runs the program on a host whose clock is wrong: `python shifted_clock.py SECONDS serve`.

It replaces the functions that read the clock of the host before it imports the program.
"""

import datetime
import sys
import time
from datetime import datetime as real_datetime
from typing import Any


class _InstanceCheck(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, real_datetime)


_time, _time_ns = time.time, time.time_ns


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

    time.time = lambda: _time() + seconds
    time.time_ns = lambda: _time_ns() + int(seconds * 1e9)
    datetime.datetime = ShiftedDatetime  # type: ignore[misc]


if __name__ == "__main__":
    del sys.path[0]  # this folder; its files must not hide other modules
    shift_clock(float(sys.argv.pop(1)))
    from sso.cli import main

    main()
