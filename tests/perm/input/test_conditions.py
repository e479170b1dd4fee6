"""Conditions in requests: strict types, no unknown members, limits."""

from typing import Any

import pytest

from sso.core.field_errors import FieldError
from sso.perm.input.condition_notation import MAX_LISTED, condition_text, parse_condition
from sso.perm.input.conditions import check_condition


@pytest.mark.parametrize(
    "condition",
    [
        {"everyone": "false"},
        {"everyone": 0},
        {"everyone": None},
        {"uid": "12"},
        {"uid": [12]},
        {"uid": [""]},
        {"uid": None},
        {"tag": ""},
        {"tag": 1},
        {"tag": ["a"]},
        {"tag": "a\n"},
        {"domain": ""},
        {"domain": "@x.com"},
        {"domain": "a b"},
        {"domain": ["x"]},
        {"domain": "a@b"},
        {"domain": 5},
        {"purchase": ""},
        {"ip": "10.0.0.0/33"},
        {"ip": 1},
        {"ip": True},
        {"ip": ["10.0.0.0/8"]},
        {"ip": "10.0.0.0/255.0.0.0"},
        {"and": {}},
        {"and": [1]},
        {"or": "x"},
        {"or": [None]},
        {"or": [1]},
        {"not": {}},
        {"Domain": "x"},
        {"and": [{"unknown": 1}]},
        [],
        "x",
        1,
        True,
        None,
    ],
)
def test_wrong_condition_is_refused(condition: Any) -> None:
    with pytest.raises(FieldError):
        check_condition(condition)


def test_error_names_the_path_of_the_member() -> None:
    with pytest.raises(FieldError) as caught:
        check_condition({"or": [{"tag": "a"}, {"and": [{"ip": "x"}]}]})
    assert caught.value.message == "condition.or[1].and[0].ip: not an IP address"


def chain(length: int) -> dict[str, Any]:
    condition: dict[str, Any] = {"everyone": True}
    for _ in range(length - 1):
        condition = {"and": [condition]}
    return condition


def test_condition_has_at_most_256_nodes() -> None:
    check_condition({"or": [{"tag": "a"}] * 255})
    with pytest.raises(FieldError, match="256 nodes"):
        check_condition({"or": [{"tag": "a"}] * 256})
    with pytest.raises(FieldError, match="256 nodes"):
        check_condition({"or": [{"tag": "a"}] * 1_000_000})


def test_condition_has_at_most_64_levels() -> None:
    check_condition(chain(64))
    with pytest.raises(FieldError, match="64 levels"):
        check_condition(chain(65))
    with pytest.raises(FieldError):
        check_condition(chain(900))


@pytest.mark.parametrize(
    ("time", "message"),
    [
        ([], "condition.time: must be an object"),
        ({"start": 1}, 'condition.time: "start" is not known; known are from, until, weekly, zone'),
        ({"from": "10:00"}, "condition.time.from: must be an integer"),
        ({"until": 10**12}, "condition.time.until: must be Unix seconds, at most 32503680000"),
        ({"from": 10, "until": 10}, "condition.time.until: must be later than from"),
        (
            {"zone": "Europe/Atlantis"},
            "condition.time.zone: must be a time zone such as Europe/Berlin, or UTC; there is no such zone",
        ),
        ({"zone": "../../etc/passwd"}, "zone: must be a time zone"),
        ({"zone": "right/Europe/Berlin"}, "zone: must be a time zone"),
        ({"zone": "Europe"}, "zone: must be a time zone"),
        ({"zone": "Europe/Berlin\0"}, "zone: must be a time zone"),
        ({"zone": 1}, "zone: must be a time zone"),
        ({"weekly": {}}, "condition.time.weekly: must be an array"),
        ({"weekly": []}, "condition.time.weekly: must have at least one window"),
        ({"weekly": [{"from": "10:00"}] * 21}, "condition.time.weekly: must have at most 20 items"),
        ({"weekly": [{}]}, "condition.time.weekly[0]: must have at least one of days, from, to"),
        ({"weekly": [{"day": "sat"}]}, 'condition.time.weekly[0]: "day" is not known; known are days, from, to'),
        (
            {"weekly": [{"days": ["sat", "sunday"]}]},
            "weekly[0].days: must be a list of mon, tue, wed, thu, fri, sat",
        ),
        ({"weekly": [{"days": []}]}, "weekly[0].days: must be a list of mon"),
        ({"weekly": [{"days": [["mon"]]}]}, "weekly[0].days: must be a list of mon"),
        ({"weekly": [{"from": "9:00"}]}, "weekly[0].from: must be a time of the day such as 22:00"),
        ({"weekly": [{"to": "24:01"}]}, "weekly[0].to: must be a time of the day such as 22:00"),
        ({"weekly": [{"from": "24:00", "to": "10:00"}]}, "weekly[0].from: must be earlier than 24:00"),
        (
            {"weekly": [{"from": "10:00", "to": "10:00"}]},
            "weekly[0].to: must differ from from; 00:00 to 24:00 is the whole day",
        ),
    ],
)
def test_wrong_time_window_is_refused(time: Any, message: str) -> None:
    with pytest.raises(FieldError) as caught:
        check_condition({"time": time})
    assert message in str(caught.value.message)


def test_weekly_windows_count_as_nodes() -> None:
    many = {"time": {"weekly": [{"from": "10:00"}] * 20}}
    check_condition({"or": [many] * 12})
    with pytest.raises(FieldError, match="256 nodes"):
        check_condition({"or": [many] * 13})


def test_short_text_of_a_condition_has_lists_of_a_limited_length() -> None:
    parts = ",".join(["1"] * MAX_LISTED)
    assert len(parse_condition([f"uid={parts}"], ("condition",))["uid"]) == MAX_LISTED
    with pytest.raises(FieldError, match=r"condition\.uid: must have at most 5000 parts in this form"):
        parse_condition([f"uid={parts},1"], ("condition",))
    assert condition_text({"uid": ["1"] * (MAX_LISTED + 1)}).startswith("{")


def test_json_in_a_short_text_has_at_most_64_levels() -> None:
    with pytest.raises(FieldError, match="condition: expected JSON"):
        parse_condition(["tag=beta", '{"and":' + "[" * 300 + "]" * 300 + "}"], ("condition",))
