"""The member ``time`` of a condition: a first and a last moment, and hours of the week in a time zone.

Weekly hours are those that a clock in the zone shows. When clocks are put forward, a window may begin late or not at
all; when they are put back, the hour that the clock shows twice counts twice. Hours that end at or before they begin
end on the next day.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo
from enum import Enum
from functools import lru_cache
from typing import NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY_MINUTES = 24 * 60
FOREVER = 2**62
MAX_MOMENT = 32_503_680_000  # the year 3000; calendars end in the year 9999
CLOCK = re.compile(r"(?:[01][0-9]|2[0-3]):[0-5][0-9]|24:00", re.ASCII)
# Hours of one day of the week may fall into an hour that clocks skip, and then begin a week later.
_SEARCHED_DAYS = 16


class TimeBound(Enum):
    """Stands for a moment where all moments count: what holds at some time, or what holds all the time."""

    SOMETIMES = "sometimes"  # members ``time`` count as met
    ALWAYS = "always"  # members ``time`` count as not met

    @property
    def opposite(self) -> "TimeBound":
        return TimeBound.ALWAYS if self is TimeBound.SOMETIMES else TimeBound.SOMETIMES


When: TypeAlias = int | TimeBound


class WeeklyHours(NamedTuple):
    days: frozenset[int]  # on which the hours begin; Monday is 0
    start: int  # in minutes after midnight
    end: int

    def include(self, day: int, minute: int) -> bool:
        if self.start < self.end:
            return day in self.days and self.start <= minute < self.end
        return (day in self.days and minute >= self.start) or ((day - 1) % 7 in self.days and minute < self.end)


class Period(NamedTuple):
    """Seconds, without the last one, in which a window is open, or in which it is closed."""

    since: int
    until: int
    is_open: bool


@dataclass(unsafe_hash=True)
class TimeWindow:
    starts: int = 0
    ends: int = FOREVER
    weekly: tuple[WeeklyHours, ...] = ()  # none: at all hours
    zone: str = "UTC"
    _known: Period = field(default=Period(0, 0, False), init=False, repr=False, compare=False)

    def includes(self, when: When) -> bool:
        if isinstance(when, TimeBound):
            return when is TimeBound.SOMETIMES
        return self.period(when).is_open

    def period(self, now: int) -> Period:
        """Returns whether the window is open, and the next moment at which that changes."""
        known = self._known
        if not known.since <= now < known.until:
            known = self._known = self._compute_period(now)
        return known

    def _compute_period(self, now: int) -> Period:
        if now < self.starts:
            opens = self.starts if self._in_week(self.starts) else self._next_change(self.starts)
            return Period(now, opens if opens < self.ends else FOREVER, False)
        if now >= self.ends:
            return Period(now, FOREVER, False)
        is_open = self._in_week(now)
        change = self._next_change(now)
        if change >= self.ends:
            change = self.ends if is_open else FOREVER
        return Period(now, change, is_open)

    def _in_week(self, moment: int) -> bool:
        if not self.weekly:
            return True
        local = datetime.fromtimestamp(moment, time_zone(self.zone))
        day, minute = local.weekday(), local.hour * 60 + local.minute
        return any(hours.include(day, minute) for hours in self.weekly)

    def _next_change(self, moment: int) -> int:
        """Returns when the weekly hours begin or end next; `FOREVER` if they are all hours or none."""
        if self.weekly:
            is_open = self._in_week(moment)
            for later in self._possible_changes(moment):
                if self._in_week(later) != is_open:
                    return later
        return FOREVER

    def _possible_changes(self, moment: int) -> Iterator[int]:
        zone = time_zone(self.zone)
        first = datetime.fromtimestamp(moment, zone).date()
        minutes = {minute % DAY_MINUTES for hours in self.weekly for minute in (0, hours.start, hours.end)}
        for number in range(_SEARCHED_DAYS):
            day = first + timedelta(days=number)
            yield from sorted(later for later in _moments(day, minutes, zone) if later > moment)


def _moments(day: date, minutes: Iterable[int], zone: tzinfo) -> set[int]:
    """Returns when a clock shows these minutes of a day, which may be twice, and when it is put forward or back."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=zone)
    shown = [midnight.replace(hour=minute // 60, minute=minute % 60) for minute in minutes]
    moments = {int(clock.replace(fold=fold).timestamp()) for clock in shown for fold in (0, 1)}
    first, last = int(midnight.timestamp()), int((midnight + timedelta(days=1)).timestamp())
    if _offset(first, zone) != _offset(last, zone):
        moments.add(_transition(first, last, zone))
    return moments


def _transition(first: int, last: int, zone: tzinfo) -> int:
    """Returns the second between both at which the offset of the zone changes."""
    before = _offset(first, zone)
    while last - first > 1:
        middle = (first + last) // 2
        first, last = (middle, last) if _offset(middle, zone) == before else (first, middle)
    return last


def _offset(moment: int, zone: tzinfo) -> timedelta | None:
    return datetime.fromtimestamp(moment, zone).utcoffset()


def clock_minute(text: str) -> int:
    """Returns the minute of the day for a text such as ``22:00``, up to ``24:00``. Raises ValueError."""
    if CLOCK.fullmatch(text) is None:
        raise ValueError("must be a time of the day such as 22:00")
    return int(text[:2]) * 60 + int(text[3:])


@lru_cache(maxsize=256)
def time_zone(name: str) -> tzinfo:
    """Raises ValueError for a name that is not in the time zone database."""
    if name == "UTC":
        return UTC
    # Systems have more files, some of which differ from host to host or count leap seconds.
    if "/" not in name or name.startswith(("posix/", "right/")):
        raise ValueError("unknown time zone")
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        raise ValueError("unknown time zone") from None
