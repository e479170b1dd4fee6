"""Time windows of conditions: when they are open, around changes of clocks too, how long, and what explanations say."""

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sso.perm.engine.conditions import Condition, compare, end_of, holds
from sso.perm.engine.decode import decode_condition
from sso.perm.engine.explanation.explain import explain_rule
from sso.perm.engine.explanation.text import comparison_text, explanation_lines
from sso.perm.engine.time_windows import DAYS, FOREVER, TimeBound, TimeWindow, clock_minute, time_zone
from sso.perm.engine.user_facts import UserFacts
from sso.perm.engine.validity import NEVER_ENDS, valid_until
from sso.perm.input.conditions import check_condition
from tests.perm import time_reference
from tests.perm.evaluation import GROUP_A, evaluate, role_giving

USER = UserFacts("1001", tags=frozenset({"vip"}))
WEEKEND = {"weekly": [{"days": ["sat", "sun"], "from": "10:00", "to": "22:00"}], "zone": "Europe/Berlin"}
NIGHT = {"weekly": [{"days": ["fri"], "from": "22:00", "to": "02:00"}], "zone": "Europe/Berlin"}


def condition(time: dict[str, Any], **members: Any) -> Condition:
    check_condition({"time": time, **members})
    return decode_condition({"time": time, **members})


def window(time: dict[str, Any]) -> TimeWindow:
    decoded = condition(time).time
    assert decoded is not None
    return decoded


def at(text: str, zone: str = "Europe/Berlin", *, fold: int = 0) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp())


@pytest.mark.parametrize(
    ("time", "first", "last"),
    [
        (WEEKEND, "2026-11-21 10:00:00", "2026-11-21 21:59:59"),
        (WEEKEND, "2026-11-22 10:00:00", "2026-11-22 21:59:59"),
        (NIGHT, "2026-11-20 22:00:00", "2026-11-21 01:59:59"),
        ({"weekly": [{"days": ["sun"]}], "zone": "Europe/Berlin"}, "2026-11-22 00:00:00", "2026-11-22 23:59:59"),
        ({"weekly": [{"days": ["sun"], "from": "20:00", "to": "00:00"}]}, "2026-11-22 21:00:00", "2026-11-23 00:59:59"),
        ({"weekly": [{"days": ["sun"], "from": "20:00", "to": "02:00"}]}, "2026-11-22 21:00:00", "2026-11-23 02:59:59"),
        ({"from": at("2026-11-20 18:00"), "until": at("2026-11-20 20:00")}, "2026-11-20 18:00", "2026-11-20 19:59:59"),
    ],
)
def test_window_is_open_from_its_first_to_its_last_second(time: dict[str, Any], first: str, last: str) -> None:
    decoded = window(time)
    assert [decoded.includes(at(first) - 1), decoded.includes(at(first))] == [False, True]
    assert [decoded.includes(at(last)), decoded.includes(at(last) + 1)] == [True, False]
    assert decoded.period(at(first) - 1).until == at(first)
    assert decoded.period(at(first)).until == at(last) + 1


def test_window_whose_hours_begin_when_it_ends_does_not_open() -> None:
    ends = at("2026-11-21 10:00")
    for starts in (ends - 7200, ends - 60):
        decoded = window({**WEEKEND, "from": starts, "until": ends})
        assert decoded.period(starts - 60).until == decoded.period(starts).until == FOREVER


def test_window_that_was_looked_at_equals_one_that_was_not() -> None:
    decoded = window(WEEKEND)
    decoded.includes(at("2026-11-21 10:00"))
    assert (decoded, hash(decoded)) == (window(WEEKEND), hash(window(WEEKEND)))


def test_hours_follow_the_clock_when_it_is_put_forward() -> None:
    """In Berlin, 02:00 becomes 03:00 on 2027-03-28, a Sunday."""
    skipped = {"weekly": [{"days": ["sun"], "from": "02:00", "to": "03:00"}], "zone": "Europe/Berlin"}
    across = {"weekly": [{"days": ["sun"], "from": "02:30", "to": "04:00"}], "zone": "Europe/Berlin"}
    change = at("2027-03-28 03:00")
    assert window(skipped).period(at("2027-03-28 01:59:59")).until == at("2027-04-04 02:00")
    assert window(skipped).period(at("2027-03-21 12:00")).until == at("2027-04-04 02:00")
    assert window(across).period(at("2027-03-28 01:00")).until == change
    assert window(across).period(change).until == at("2027-03-28 04:00") == change + 3600
    assert window(WEEKEND).period(at("2027-03-28 10:00")).until == at("2027-03-28 10:00") + 12 * 3600
    assert at("2027-03-28 10:00") - at("2027-03-27 10:00") == 23 * 3600


def test_hours_follow_the_clock_when_it_is_put_back() -> None:
    """In Berlin, 03:00 becomes 02:00 on 2026-10-25, a Sunday: the hour from 02:00 happens twice."""
    repeated = {"weekly": [{"days": ["sun"], "from": "02:00", "to": "03:00"}], "zone": "Europe/Berlin"}
    inside = {"weekly": [{"days": ["sun"], "from": "02:30", "to": "04:00"}], "zone": "Europe/Berlin"}
    assert window(repeated).period(at("2026-10-25 02:00")).until == at("2026-10-25 02:00") + 2 * 3600
    first, second = at("2026-10-25 02:30"), at("2026-10-25 02:30", fold=1)
    assert second == first + 3600
    assert window(inside).period(first).until == first + 1800  # the clock shows 02:00 again
    assert window(inside).period(first + 1800).until == second
    assert at("2026-10-25 10:00") - at("2026-10-24 10:00") == 25 * 3600


clocks = st.integers(0, 24 * 60 - 1).map(lambda minute: f"{minute // 60:02}:{minute % 60:02}") | st.sampled_from(
    ("00:00", "02:00", "02:30", "03:00", "22:00")
)
hours = st.fixed_dictionaries(
    {"from": clocks},
    optional={"to": clocks | st.just("24:00"), "days": st.lists(st.sampled_from(DAYS), min_size=1, unique=True)},
).filter(lambda item: item["from"] != item.get("to"))
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Sao_Paulo", "UTC")
# Near the changes of clocks of these zones, and any time.
MOMENTS = [at(f"2026-{day} 00:30", zone) for zone in ZONES for day in ("03-08", "03-29", "04-05", "10-04", "10-25")]
moments = st.integers(at("2024-01-01 00:00"), at("2030-01-01 00:00")) | st.builds(
    int.__add__, st.sampled_from(MOMENTS), st.integers(-90_000, 90_000)
)


@st.composite
def windows(draw: st.DrawFn) -> tuple[dict[str, Any], int]:
    moment = draw(moments)
    time: dict[str, Any] = {"zone": draw(st.sampled_from(ZONES))}
    if draw(st.booleans()):
        time["weekly"] = draw(st.lists(hours, min_size=1, max_size=3))
    start = moment + draw(st.integers(-100_000, 100_000))
    if draw(st.booleans()):
        time["from"] = start
    if draw(st.booleans()):
        time["until"] = start + draw(st.integers(1, 200_000))
    return time, moment


@settings(max_examples=40, deadline=None)
@given(windows())
def test_windows_agree_with_the_reference(case: tuple[dict[str, Any], int]) -> None:
    time, moment = case
    decoded = condition(time).time
    if decoded is None:
        assert set(time) == {"zone"}
        return
    period = decoded.period(moment)
    assert period.is_open == time_reference.is_open(time, moment)
    change = time_reference.next_change(time, moment)
    assert period.until == change if change is not None else period.until > moment + time_reference.MINUTES * 60 - 60
    assert decoded.period(period.since - 7).is_open == time_reference.is_open(time, period.since - 7)  # back in time


def test_time_without_a_requirement_is_the_same_as_absent() -> None:
    for time in ({}, {"zone": "Europe/Berlin"}):
        assert not holds(condition(time), USER, 0)
        assert holds(condition(time, tag="vip"), USER, 0)
        assert condition(time, tag="vip") == condition({}, tag="vip")


def test_end_of_a_condition_is_that_of_its_windows() -> None:
    now = at("2026-11-21 12:00")
    weekend, later = at("2026-11-21 22:00"), {"until": at("2026-11-25 00:00")}
    assert end_of(condition(WEEKEND), USER, now) == weekend
    assert end_of(decode_condition({"tag": "vip"}), USER, now) == 0
    assert end_of(decode_condition({"and": [{"time": WEEKEND}, {"time": later}]}), USER, now) == weekend
    assert end_of(decode_condition({"or": [{"time": WEEKEND}, {"time": later}]}), USER, now) == later["until"]
    assert end_of(decode_condition({"or": [{"time": WEEKEND}, {"tag": "vip"}]}), USER, now) == 0
    assert end_of(decode_condition({"or": [{"time": NIGHT}, {"time": WEEKEND}]}), USER, now) == weekend


def test_bounds_count_windows_as_met_or_not_met() -> None:
    for time in (WEEKEND, {"until": 1}):
        assert holds(condition(time, tag="vip"), USER, TimeBound.SOMETIMES)
        assert not holds(condition(time, tag="vip"), USER, TimeBound.ALWAYS)
        assert not holds(condition(time, tag="other"), USER, TimeBound.SOMETIMES)


def test_opposite_of_a_bound() -> None:
    assert TimeBound.SOMETIMES.opposite is TimeBound.ALWAYS
    assert TimeBound.ALWAYS.opposite is TimeBound.SOMETIMES


def test_window_that_ends_before_its_hours_begin_never_opens() -> None:
    saturday = at("2026-11-21 10:00")
    never = window({"from": at("2026-11-20 12:00"), "until": saturday, **WEEKEND})
    once = window({"from": at("2026-11-20 12:00"), "until": saturday + 1, **WEEKEND})
    for moment in (at("2026-11-20 11:00"), at("2026-11-20 13:00"), saturday):
        assert (never.period(moment).is_open, never.period(moment).until) == (False, FOREVER)
    assert once.period(at("2026-11-20 11:00")).until == once.period(at("2026-11-20 13:00")).until == saturday
    assert once.period(saturday) == (saturday, saturday + 1, True)


@pytest.mark.parametrize("text", ["", "24:01", "7:00", "22:60", "22:00:00", "25:00", "22.00", "２２:00"])
def test_clock_is_hours_and_minutes(text: str) -> None:
    assert [clock_minute(good) for good in ("00:00", "09:05", "24:00")] == [0, 545, 1440]
    with pytest.raises(ValueError, match="22:00"):
        clock_minute(text)


@pytest.mark.parametrize(
    "name", ["", "CET", "posix/Europe/Berlin", "right/Europe/Berlin", "Europe/Nowhere", "../etc/x", "/"]
)
def test_zone_is_one_of_the_time_zone_database(name: str) -> None:
    assert time_zone("UTC") is UTC
    assert time_zone("Europe/Berlin") == ZoneInfo("Europe/Berlin")
    with pytest.raises(ValueError, match="unknown time zone"):
        time_zone(name)


@pytest.mark.parametrize(
    ("time", "moment", "text"),
    [
        (
            WEEKEND,
            "2026-11-20 12:00",
            "outside Saturday and Sunday 10:00-22:00 Europe/Berlin; next begins 2026-11-21 09:00:00Z",
        ),
        (
            WEEKEND,
            "2026-11-22 12:00",
            "within Saturday and Sunday 10:00-22:00 Europe/Berlin; ends 2026-11-22 21:00:00Z",
        ),
        ({"until": 60}, "2026-11-22 12:00", "outside until 1970-01-01 00:01:00Z; it does not begin again"),
        ({"from": 60}, "2026-11-22 12:00", "within from 1970-01-01 00:01:00Z"),
        (
            {"weekly": [{"days": ["mon", "tue", "wed", "thu", "fri"]}, {"from": "22:00", "to": "02:00"}]},
            "2026-11-22 12:00",
            "outside Monday to Friday and every day 22:00-02:00 UTC; next begins 2026-11-22 22:00:00Z",
        ),
    ],
)
def test_comparison_says_when_a_window_begins_and_ends(time: dict[str, Any], moment: str, text: str) -> None:
    (comparison,) = compare(condition(time), USER, at(moment))
    assert comparison_text(comparison._asdict()) == text


def test_role_ends_with_the_window_and_its_absence_is_explained() -> None:
    """With a role for users who meet the condition, one that is assigned too, and one of a group with a window."""
    now = at("2026-11-21 12:00")
    group = {"id": GROUP_A, "conditions": [{"title": "weekend", "condition": {"time": WEEKEND}}]}
    actions = {"services": {"10": {"groups": [{"group_id": GROUP_A, "role": "grouped", "action": "grant"}]}}}
    parts = {
        "roles": [
            role_giving("open", "a", condition={"time": WEEKEND}),
            role_giving("assigned", "b", condition={"time": WEEKEND}),
            role_giving("grouped", "c"),
        ],
        "own": {"roles": [{"name": "assigned", "expired": now + 10}]},
        "home": {"id": "p", "groups": [group], "settings": actions},
    }
    ends = at("2026-11-21 22:00")
    inside = evaluate(**parts, now=now)
    assert inside.short(with_exp=True) == [f"{name}:{ends - now}" for name in "abc"]
    assert valid_until(inside.application, inside.facts, now) == now + 10
    assert valid_until(inside.application, inside.facts, now + 10) == ends
    outside = evaluate(**parts, now=ends)
    assert outside.short() == []
    explained = explain_rule(outside.application, outside.facts, outside.effective, "a")
    assert [line.text for line in explanation_lines(explained)] == [
        "role open has it, but its condition does not hold "
        "(outside Saturday and Sunday 10:00-22:00 Europe/Berlin; next begins 2026-11-22 09:00:00Z)"
    ]
    plain = evaluate(roles=[role_giving("open", "a", condition={"tag": "vip"})])
    assert valid_until(plain.application, plain.facts, now) == NEVER_ENDS
