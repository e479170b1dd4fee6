"""A second, deliberately simple reading of time windows: it compares texts of clocks, minute by minute."""

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

MINUTES = 9 * 24 * 60  # that are searched for a change


def is_open(window: dict[str, Any], moment: int) -> bool:
    if moment < window.get("from", 0) or moment >= window.get("until", moment + 1):
        return False
    local = datetime.fromtimestamp(moment, ZoneInfo(window.get("zone", "UTC")))
    return "weekly" not in window or any(_shown(hours, local) for hours in window["weekly"])


def _shown(hours: dict[str, Any], local: datetime) -> bool:
    start, end = hours.get("from", "00:00"), hours.get("to", "24:00")
    clock = local.strftime("%H:%M")
    if start < end:
        return _has_day(hours, local) and start <= clock < end
    return (_has_day(hours, local) and clock >= start) or (_has_day(hours, local, yesterday=True) and clock < end)


def _has_day(hours: dict[str, Any], local: datetime, *, yesterday: bool = False) -> bool:
    day = local.date() - timedelta(days=yesterday)
    return "days" not in hours or day.strftime("%a").lower() in hours["days"]


def next_change(window: dict[str, Any], moment: int) -> int | None:
    """The first moment after this one at which the window opens or closes, if that is within some days."""
    return _next_change(json.dumps(window), moment)


@lru_cache(maxsize=1024)
def _next_change(text: str, moment: int) -> int | None:
    window = json.loads(text)
    minutes: Iterable[int] = (moment // 60 * 60 + 60 * number for number in range(1, MINUTES))
    edges = {edge for name in ("from", "until") if (edge := window.get(name, 0)) > moment}
    if edges:
        minutes = sorted({*minutes, *edges})
    before = is_open(window, moment)
    return next((later for later in minutes if is_open(window, later) != before), None)
