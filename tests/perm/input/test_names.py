"""Names and ids in requests: segments of paths, titles, aliases, ids."""

from typing import Any

import pytest

from sso.core.field_errors import FieldError
from sso.perm.engine import reserved_names
from sso.perm.input import names as input_names

BAD_NAMES: list[Any] = [
    "",
    "a.b",
    "a/b",
    "a|b",
    "a:b",
    "a,b",
    "a b",
    "a\n",
    "\na",
    "é",
    "ａ",
    "\u212aey",
    "a" * 65,
    "projectAccess",
    "__proto__",
    None,
    1,
    True,
    ["a"],
    {"a": 1},
    "a\x00",
]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_bad_segment_is_refused(name: Any) -> None:
    assert not reserved_names.is_segment(name)
    with pytest.raises(FieldError):
        input_names.read_segment(name, ("x",))


@pytest.mark.parametrize("name", ["a", "A-Z_09", "a" * 64, "applications", "projectaccess", "-"])
def test_valid_segment_is_accepted(name: str) -> None:
    assert input_names.read_segment(name, ("x",)) == name


@pytest.mark.parametrize(
    "title",
    [
        "Internal",
        "GAME",
        "game",
        "game ",
        " game",
        "game\n",
        "İnternal",
        "\u212aey",
        "a" * 33,
        "",
        "__",
        " _ ",
        "a/b",
        "a\tb",
        "a-b",
        "a.b",
        " ",
        "é",
        "ａ",
        "a\u00a0b",
        None,
        5,
        True,
        ["a"],
        {},
    ],
)
def test_title_that_is_reserved_or_invalid_is_refused(title: Any) -> None:
    with pytest.raises(FieldError):
        input_names.project_id_from_title(title)


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Red Dawn", "red_dawn"),
        ("MY PROJ", "my_proj"),
        ("my_proj", "my_proj"),
        ("ga me", "ga_me"),
        ("a  b", "a__b"),
        ("7", "7"),
    ],
)
def test_project_id_is_the_title_in_lower_case_with_underscores(title: str, expected: str) -> None:
    assert input_names.project_id_from_title(title) == expected


def test_reserved_project_title_is_a_valid_group_title() -> None:
    assert input_names.read_title("Game", ("title",)) == "Game"


def test_aliases_are_distinct_and_at_most_20() -> None:
    assert input_names.read_aliases(["a", "b", "a"], "p") == ("a", "b")
    assert len(input_names.read_aliases([f"a{at}" for at in range(20)], "p")) == 20


@pytest.mark.parametrize(
    "value",
    [
        *(["p"], ["game"], ["Internal"], ["a.b"], ["a/b"], [""], ["a", 1], [None], [["x"]], ["projectAccess"]),
        *("a", {}, None, [f"a{at}" for at in range(21)]),
    ],
)
def test_bad_aliases_are_refused(value: Any) -> None:
    with pytest.raises(FieldError):
        input_names.read_aliases(value, "p")


@pytest.mark.parametrize("value", ["a" * 23, "A" * 24, "g" * 24, "a" * 24 + "\n", "", "x", 1, True, None, [], {}])
def test_group_id_is_24_hex_digits(value: Any) -> None:
    assert input_names.read_group_id("0123456789abcdef01234567", ("x",))
    with pytest.raises(FieldError):
        input_names.read_group_id(value, ("x",))


@pytest.mark.parametrize("value", ["0", "01", "-1", "1e2", "１", "2147483648", 10, True, "", "a"])
def test_application_key_has_one_spelling(value: Any) -> None:
    assert input_names.read_application_key("2147483647", ("x",)) == 2**31 - 1
    with pytest.raises(FieldError):
        input_names.read_application_key(value, ("x",))


@pytest.mark.parametrize(
    "value", [None, "", "0", "010", "1e2", " 10", "-10", "10.0", "１０", "x", 0, -1, 2**31, 1.0, True, []]
)
def test_application_id_has_one_spelling(value: Any) -> None:
    assert input_names.read_application_id("10", ("x",)) == input_names.read_application_id(10, ("x",)) == 10
    with pytest.raises(FieldError):
        input_names.read_application_id(value, ("x",))


def test_error_names_the_path_and_not_the_value() -> None:
    with pytest.raises(FieldError) as caught:
        input_names.read_segment("<script>", ("private_data",))
    assert caught.value.message == "private_data: a name must be 1 to 64 letters, digits, underscores or dashes"
    assert caught.value.status == 400
