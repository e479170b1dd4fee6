"""Request models: strict types, and errors that name the field without repeating its value."""

from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field, ValidationError, field_validator

from sso.core.field_errors import FieldError
from sso.web.body import JSON, ParsedBody
from sso.web.request_model import AppId, Flag, JsonObject, RequestModel, Strings, WholeNumber, at_most, validate


class Item(RequestModel):
    nick: Annotated[str, at_most(3)]


class Sample(RequestModel):
    flag: Flag = False
    number: WholeNumber = 0
    small: Annotated[WholeNumber, Field(ge=1, le=10)] = 1
    app_id: AppId = 0
    text: str = ""
    nick: Annotated[str, at_most(8, at_least=2)] = "ann"
    long: Annotated[str, at_most(10_000)] = ""
    ips: Strings = Field(alias="ips[]", max_length=3, default_factory=list)
    data: JsonObject = Field(default_factory=dict)
    kind: Literal["a", "b"] = "a"
    plain: bool = False
    items: list[Item] = Field(default_factory=list)
    counts: dict[str, int] = Field(default_factory=dict)

    @field_validator("text")
    @classmethod
    def _not_secret(cls, value: str) -> str:
        if value == "secret":
            raise ValueError("must be something else")
        return value


class Needs(RequestModel):
    one: str
    two: str
    three: Flag
    four: AppId


def accept(form: bool = False, **fields: Any) -> Sample:
    return validate(Sample, ParsedBody(fields, is_form=form))


def refuse(form: bool = False, **fields: Any) -> str:
    with pytest.raises(FieldError) as refusal:
        accept(form, **fields)
    assert refusal.value.status == 400
    return refusal.value.message


@pytest.mark.parametrize("form", [False, True])
def test_flag_is_the_string_0_or_1(form: bool) -> None:
    assert accept(form, flag="1").flag is True
    assert accept(form, flag="0").flag is False
    assert accept(form).flag is False


@pytest.mark.parametrize("form", [False, True])
@pytest.mark.parametrize("value", [1, 0, True, False, None, "true", "", "2", "01", " 1", "１", 1.0, ["1"], {"1": "1"}])
def test_flag_of_another_type_or_value_is_refused(value: Any, form: bool) -> None:
    assert refuse(form, flag=value) == 'flag: must be "0" or "1"'


@pytest.mark.parametrize("value", [0, -1, 2**63 - 1, -(2**63)])
def test_whole_number_is_an_integer_and_in_a_form_its_decimal_string(value: int) -> None:
    assert accept(number=value).number == value
    assert accept(form=True, number=str(value)).number == value
    assert refuse(number=str(value)) == "number: must be an integer"


@pytest.mark.parametrize("form", [False, True])
@pytest.mark.parametrize(
    "value",
    [
        *(True, False, None, 1.0, 1.5, [1], {}, 2**63, -(2**63) - 1),
        *("", "1e2", " 1", "1 ", "1\n", "１２", "+1", "1_0", "01", "--1", "-", "1.0", "0x1", "٣", "9" * 19, "1" * 5000),
    ],
)
def test_whole_number_of_another_type_or_range_is_refused(value: Any, form: bool) -> None:
    assert refuse(form, number=value) == "number: must be an integer"


def test_whole_number_can_be_narrowed() -> None:
    assert accept(small=10).small == 10
    assert refuse(small=0) == "small: must be at least 1"
    assert refuse(form=True, small="11") == "small: must be at most 10"


@pytest.mark.parametrize("form", [False, True])
@pytest.mark.parametrize("value", [0, 1, 2**31 - 1])
def test_app_id_is_an_integer_or_its_string_everywhere(value: int, form: bool) -> None:
    assert accept(form, app_id=value).app_id == value
    assert accept(form, app_id=str(value)).app_id == value


@pytest.mark.parametrize("form", [False, True])
@pytest.mark.parametrize(
    "value",
    [
        -1,
        2**31,
        2**63,
        1.5,
        1.0,
        True,
        None,
        [1],
        {},
        "",
        "-1",
        "-0",
        "01",
        "00",
        " 1",
        "+1",
        "1e2",
        "１",
        "2147483648",
    ],
)
def test_app_id_of_another_type_or_range_is_refused(value: Any, form: bool) -> None:
    assert refuse(form, app_id=value) == "app_id: must be an application id"


def test_text_is_limited_in_code_points() -> None:
    assert accept(text="😀" * 4096).text == "😀" * 4096
    assert refuse(text="x" * 4097) == "text: must be at most 4096 characters"
    assert accept(long="x" * 10_000).long == "x" * 10_000
    assert refuse(long="x" * 10_001) == "long: must be at most 10000 characters"
    assert accept(nick="é" * 8).nick == "é" * 8
    assert refuse(nick="é" * 9) == "nick: must be at most 8 characters"
    assert refuse(nick="x") == "nick: must have a length of at least 2"
    assert refuse(ips=["x" * 4097]) == "ips[0]: must be at most 4096 characters"


def test_strings_are_accepted_with_and_without_brackets() -> None:
    for name in ("ips", "ips[]"):
        assert validate(Sample, ParsedBody({name: ["a", "b"]})).ips == ["a", "b"]
        with pytest.raises(FieldError) as refusal:
            validate(Sample, ParsedBody({name: ["a", 1]}))
        assert refusal.value.message == f"{name}[1]: must be a string"


def test_one_string_is_a_list_only_in_a_form() -> None:
    assert accept(form=True, ips="a").ips == ["a"]
    assert refuse(ips="a") == "ips: must be an array"


def test_strings_are_validated_up_to_the_first_invalid_one() -> None:
    assert refuse(ips=[1, 2]) == "ips[0]: must be a string"
    assert refuse(ips=["a"] * 4) == "ips: must have at most 3 items"
    assert refuse(ips=[None] * 60_000) == "ips[0]: must be a string"


def test_json_object_is_kept_unchanged() -> None:
    data: JSON = {"a": [1, 2.5, None, {"b": "x" * 5000}], "😀": True}
    assert accept(data=data).data == data


WRONG: dict[str, tuple[str, list[Any]]] = {
    "text": ("must be a string", [None, True, 1, 1.5, [], {}]),
    "plain": ("must be true or false", [None, 1, 0, "true", "1", 1.0, [], {}]),
    "data": ("must be an object", [None, True, 1, 1.5, "{}", []]),
    "ips": ("must be an array", [None, True, 1, 1.5, "a", {}]),
    "counts": ("must be an object", [None, True, 1, 1.5, "a", []]),
    "items": ("must be an array", [None, True, 1, 1.5, "a", {}]),
    "kind": ("must be 'a' or 'b'", [None, True, 1, 1.5, "c", [], {}]),
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, (_, values) in WRONG.items() for value in values])
def test_error_names_the_field_with_the_wrong_type(name: str, value: Any) -> None:
    assert refuse(**{name: value}) == f"{name}: {WRONG[name][0]}"


def test_error_names_up_to_three_fields() -> None:
    with pytest.raises(FieldError) as refusal:
        validate(Needs, ParsedBody({}))
    assert refusal.value.message == "one: is required; two: is required; three: is required"
    assert refuse(text=1, flag=1) == 'flag: must be "0" or "1"; text: must be a string'


def test_error_names_the_path_of_a_nested_field() -> None:
    assert (
        refuse(items=[{"nick": "ann"}, {"nick": 1}, 5])
        == "items[1].nick: must be a string; items[2]: must be an object"
    )


def test_very_many_invalid_fields_are_not_listed() -> None:
    assert refuse(counts={str(i): "x" for i in range(60_000)}) == "too many fields are invalid"


def test_text_of_a_validator_is_the_error_text() -> None:
    assert refuse(text="secret") == "text: must be something else"


def test_error_contains_neither_values_nor_free_keys() -> None:
    secret = "hunter2 \n{error}"
    for fields in (dict.fromkeys(Sample.model_fields, secret), {"counts": {secret: 1.5}}, {"items": [secret]}):
        message = refuse(**fields)
        assert "hunter2" not in message
        assert "\n" not in message
        assert "input" not in message


def test_unknown_fields_are_ignored() -> None:
    assert accept(unknown=1, __class__="x").model_dump() == Sample().model_dump()


def test_models_are_immutable() -> None:
    with pytest.raises(ValidationError):
        accept().text = "x"  # type: ignore[misc]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from([*Sample.model_fields, "ips[]"]), values, max_size=5), st.booleans())
def test_any_fields_give_a_model_or_invalid_body(fields: dict[str, Any], form: bool) -> None:
    try:
        sample = accept(form, **fields)
    except FieldError:
        return
    assert type(sample.flag) is bool
    assert type(sample.number) is type(sample.app_id) is int
