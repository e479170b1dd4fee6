"""Time windows as texts: ``Saturday and Sunday 10:00-22:00 Europe/Berlin``."""

from sso.core.moments import utc_moment
from sso.perm.engine.time_windows import DAY_MINUTES, FOREVER, TimeWindow, WeeklyHours

_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_A_RANGE = 3  # days from which on they are a range


def window_text(window: TimeWindow) -> str:
    parts = []
    if window.starts:
        parts.append(f"from {moment_text(window.starts)}")
    if window.ends < FOREVER:
        parts.append(f"until {moment_text(window.ends)}")
    if window.weekly:
        parts.append(f"{' and '.join(map(_hours_text, window.weekly))} {window.zone}")
    return ", ".join(parts)


def period_text(window: TimeWindow, now: int) -> str:
    """Returns whether the window is open and when that changes."""
    is_open, change = window.period(now).is_open, window.period(now).until
    return change_text(window_text(window), is_open=is_open, change=change if change < FOREVER else None)


def change_text(text: str, *, is_open: bool, change: int | None) -> str:
    """``text`` is that of the window, ``change`` the moment at which it ends or next begins."""
    if is_open:
        return f"within {text}" + ("" if change is None else f"; ends {moment_text(change)}")
    then = "it does not begin again" if change is None else f"next begins {moment_text(change)}"
    return f"outside {text}; {then}"


def moment_text(moment: int) -> str:
    return f"{utc_moment(moment):%Y-%m-%d %H:%M:%SZ}"


def _hours_text(hours: WeeklyHours) -> str:
    days = _days_text(sorted(hours.days))
    is_whole_day = (hours.start, hours.end) == (0, DAY_MINUTES)
    return days if is_whole_day else f"{days} {clock_text(hours.start)}-{clock_text(hours.end)}"


def clock_text(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def _days_text(days: list[int]) -> str:
    names = [_NAMES[day] for day in days]
    if len(days) == len(_NAMES):
        return "every day"
    if len(days) >= _A_RANGE and days[-1] - days[0] == len(days) - 1:
        return f"{names[0]} to {names[-1]}"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
