"""Parsing of request bodies: what every endpoint can rely on."""

import json
import math
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sso.web.body import MAX_BYTES, MAX_VALUES, InvalidBody, parse_body

FORM = "application/x-www-form-urlencoded"
MEGABYTE = 1024 * 1024
NONCHARACTERS = [*range(0xFDD0, 0xFDF0), *(plane << 16 | low for plane in range(17) for low in (0xFFFE, 0xFFFF))]

# The time that an example takes depends on the machine.
QUIET = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def refusal(raw: bytes, content_type: str | None = None, **options: Any) -> InvalidBody | None:
    try:
        parse_body(raw, content_type, **options)
    except InvalidBody as error:
        return error
    return None


def status(raw: bytes, content_type: str | None = None, **options: Any) -> int:
    error = refusal(raw, content_type, **options)
    return 200 if error is None else error.status


def fields(text: str) -> Any:
    return parse_body(text.encode(), None).fields


# --- media types


@pytest.mark.parametrize("content_type", [None, "", " ", "application/json", FORM, "APPLICATION/JSON"])
def test_empty_body_is_an_empty_object(content_type: str | None) -> None:
    body = parse_body(b"", content_type)
    assert (body.fields, body.is_form, body.raw) == ({}, content_type == FORM, b"")


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "Application/JSON",
        "application/json;charset=utf-8",
        "application/json ; Charset=UTF-8",
        'application/json; charset="utf-8"',
        "application/json;",
    ],
)
def test_json_type_in_any_spelling(content_type: str) -> None:
    assert parse_body(b'{"a":1}', content_type).fields == {"a": 1}


@pytest.mark.parametrize("content_type", [FORM, FORM.upper(), FORM + "; charset=UTF-8"])
def test_form_type_in_any_spelling(content_type: str) -> None:
    body = parse_body(b"a=1", content_type)
    assert (body.fields, body.is_form, body.raw) == ({"a": "1"}, True, b"a=1")


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "text/json",
        "multipart/form-data; boundary=x",
        "application/json; charset=utf-16",
        "application/json; charset=utf-8; charset=utf-16",
        "application/json; charset=",
        "application/json; profile=x",
        "application/json, application/json",
        "application/json2",
        "application/ld+json",
        "json",
        ";",
        FORM + "; charset=iso-8859-1",
        "\u0130",
    ],
)
def test_other_types_are_unsupported(content_type: str) -> None:
    assert status(b"{}", content_type) == status(b"", content_type) == 415


def test_form_gets_415_where_only_json_is_accepted() -> None:
    assert status(b"a=1", FORM, forms=False) == 415
    assert status(b"{}", "application/json", forms=False) == 200


def test_missing_type_means_json_unless_it_is_required() -> None:
    assert parse_body(b'{"a":1}', None).fields == {"a": 1}
    assert status(b'{"a":1}', None, require_type=True) == 400
    assert status(b"", " ", require_type=True) == 400
    assert status(b"a=1", FORM, require_type=True) == 200


# --- size, levels, number of values


def test_size_is_limited_before_parsing() -> None:
    body = b'{"a":"' + b"x" * (MAX_BYTES - 8) + b'"}'
    assert len(body) == MAX_BYTES
    assert status(body) == 200
    assert status(body + b" ") == 413
    assert status(body + b" ", max_bytes=MEGABYTE) == 200
    assert status(b"\xff" * (MAX_BYTES + 1), "text/plain") == 413


@pytest.mark.parametrize(("opening", "closing", "levels"), [("[", "]", 1), ('{"a":', "}", 1), ('[ {"a" : ', "}\n]", 2)])
def test_levels_are_limited_to_64(opening: str, closing: str, levels: int) -> None:
    def nested(depth: int) -> bytes:
        times = (depth - 2) // levels
        return ('{"x":[' + opening * times + "1" + closing * times + "]}").encode()

    assert status(nested(64)) == 200
    for depth in (66, 1000, 20_000, 100_000):
        assert status(nested(depth), max_bytes=2 * MEGABYTE) == 400
        assert status(nested(depth)[: depth // 2 + 70]) == 400


def test_the_65th_level_is_refused() -> None:
    assert status(b'{"x":' + b"[" * 63 + b"]" * 63 + b"}") == 200
    assert status(b'{"x":' + b"[" * 64 + b"]" * 64 + b"}") == 400


def test_many_shallow_arrays_are_not_levels() -> None:
    assert len(fields('{"x":[' + "[]," * 500 + "[]]}")["x"]) == 501


@pytest.mark.parametrize("text", ["[" * 100, '\\"[' * 100, "\\\\[{" * 100, "\\\\", '\\\\\\"' + "{" * 100])
def test_brackets_in_strings_are_not_levels(text: str) -> None:
    raw = '{"x":[' + "[]," * 70 + f'"{text}"],"{text}":"{text}"}}'
    assert fields(raw) == json.loads(raw)


@pytest.mark.parametrize("hidden", ['"\\\\"', '"\\""', '"\\\\\\""', '"\\n\\\\"'])
def test_levels_after_a_tricky_string_are_still_counted(hidden: str) -> None:
    assert status(f'{{"x":[{hidden},{"[" * 100_000}'.encode()) == 400


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":[' + b"1," * MAX_VALUES + b"1]}",
        b'{"a":[' + b"{}," * MAX_VALUES + b"1]}",
        b"{" + b'"":1,' * MAX_VALUES + b'"":1}',
        b"{" * 70 + b'"' * (MEGABYTE - 70),
    ],
)
def test_number_of_values_is_limited(body: bytes) -> None:
    assert status(body, max_bytes=MEGABYTE) == 400


def test_commas_in_strings_are_not_values() -> None:
    assert status(b'{"a":"' + b"," * (MAX_VALUES + 1) + b'"}') == 200


@pytest.mark.parametrize(
    "body",
    [
        b"[" * MEGABYTE,
        b'{"a":' * (MEGABYTE // 5),
        b'{"a":"' + b'\\"' * (MEGABYTE // 2 - 8),
        b'{"a":"' + b"\\" * (MEGABYTE - 6),
        b"\n" * MEGABYTE,
        b"\x00" * MEGABYTE,
        b'{"a":' + b"1" * (MEGABYTE - 6) + b"}",
        b'{"a":' + b"1" * (MEGABYTE - 8) + b".0}",
    ],
    ids=lambda body: repr(body[:8]),
)
def test_megabyte_of_hostile_bytes_is_refused(body: bytes) -> None:
    assert status(body, max_bytes=MEGABYTE) == 400


def test_million_keys_are_too_large() -> None:
    assert status(b"{" + b'"":1,' * 1_000_000) == 413


# --- JSON


@pytest.mark.parametrize(
    "text", ["[]", "1", '"a"', "null", "true", "", " ", "{}{}", "{} x", "{}//", "{'a':1}", "{a:1}"]
)
def test_body_is_exactly_one_object(text: str) -> None:
    assert status(text.encode()) == (400 if text else 200)


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":1}',
        '{"a":1,"\\u0061":2}',
        '{"x":{"a":1,"b":2,"a":3}}',
        '{"x":[{"a":1,"a":2}]}',
        '{"":1,"":2}',
    ],
)
def test_duplicate_keys_are_refused_at_any_level(text: str) -> None:
    assert status(text.encode()) == 400


@pytest.mark.parametrize(
    "number",
    [
        *("NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1e131071", "1E+999999999999", "9" * 400 + ".0"),
        *(str(2**63), str(-(2**63) - 1), "9" * 20, "1" * 5000, "-" + "1" * 5000, "1" * 100_000),
        *("01", "+1", "-", ".5", "1.", "1e", "0x10", "1_0", "１", "nan", "inf"),
    ],
)
def test_numbers_that_jsonb_would_change_are_refused(number: str) -> None:
    assert status(f'{{"a":{number}}}'.encode()) == 400
    assert status(f'{{"a":[{{"b":{number}}}]}}'.encode()) == 400


@pytest.mark.parametrize("number", ["0", "-0", "-0.0", "1.5", "1e5", "1e-400", str(2**63 - 1), str(-(2**63))])
def test_numbers_within_limits_are_kept(number: str) -> None:
    value = fields(f'{{"a":{number}}}')["a"]
    assert (type(value), value) == (type(json.loads(number)), json.loads(number))


BAD_ESCAPES = [
    *("\\u0000", "x\\u0000y", "\\ud800", "\\uDBFF", "\\udc00", "\\uDFFF", "\\ude00\\ud83d", "\\ud83d \\ude00"),
    *("\\ud83dx", "\\ufdd0", "\\ufdef", "\\ufffe", "\\uFFFF", "\\ud83f\\udffe", "\\udbff\\udfff"),
]


@pytest.mark.parametrize("escape", BAD_ESCAPES)
def test_nul_surrogates_and_noncharacters_are_refused_in_every_string_and_key(escape: str) -> None:
    for text in (
        f'{{"a":"{escape}"}}',
        f'{{"{escape}":1}}',
        f'{{"a":["b",{{"c":"{escape}"}}]}}',
        f'{{"a":{{"b":{{"{escape}":[]}}}}}}',
    ):
        assert status(text.encode()) == 400


def test_halves_of_a_surrogate_pair_in_two_strings_are_refused() -> None:
    assert status(b'{"a":["\\ud83d","\\ude00"]}') == 400


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":"\xff"}',
        b'{"a":"\xc0\x80"}',  # overlong NUL
        b'{"a":"\xe0\x80\xaf"}',  # overlong slash
        b'{"a":"\xed\xa0\x80"}',  # a surrogate
        b'{"a":"\xf4\x90\x80\x80"}',  # beyond U+10FFFF
        b'{"a":"\xf0\x9f\x98"}',  # cut short
        b'\xef\xbb\xbf{"a":1}',
        '{"a":1}'.encode("utf-16"),
        '{"a":1}'.encode("utf-16-le"),
        '{"a":1}'.encode("utf-32-be"),
        b'{"a":"\x00"}',
        b'{"a":1}\x00',
        b'{"a":"\n"}',
        b'{"a":"\\x41"}',
        b'{"a":"\\u00"}',
        b'{"a":"\\u+041"}',
        '{"\ufdd0":1}'.encode(),
        '{"a":"\uffff"}'.encode(),
    ],
)
def test_invalid_utf8_is_refused(raw: bytes) -> None:
    assert status(raw) == 400


def test_every_noncharacter_and_no_neighbour_is_refused() -> None:
    neighbours = {near for code in NONCHARACTERS for near in (code - 1, code + 1, code ^ 0x40, code - 0xE000)}
    for code in NONCHARACTERS:
        assert status(json.dumps({"a": chr(code)}, ensure_ascii=False).encode()) == 400
        assert status(json.dumps({"a": chr(code)}).encode()) == 400
    for code in neighbours.difference(NONCHARACTERS):
        if 0 < code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF:
            assert fields(json.dumps({"a": chr(code)}, ensure_ascii=False)) == {"a": chr(code)}
            assert fields(json.dumps({"a": chr(code)})) == {"a": chr(code)}


@pytest.mark.parametrize(
    "text", ["😀👩‍👩‍👧🏴󠁧󠁢󠁥󠁮󠁧󠁿", "Ünïcödé", "日本語", "ﷺ", "\u200b\u2028\ufffd\x7f\x85", "e\u0301", "' OR 1=1;--%_\\"]
)
def test_ordinary_text_survives_unchanged(text: str) -> None:
    assert fields(json.dumps({text: text}, ensure_ascii=False)) == {text: text}
    assert fields(json.dumps({text: [text]})) == {text: [text]}
    assert parse_body(urlencode({text: text}).encode(), FORM).fields == {text: text}


def test_escaped_backslash_before_u_is_not_an_escape() -> None:
    assert fields('{"a":"\\\\u0000\\\\ud800"}') == {"a": "\\u0000\\ud800"}


# --- forms


def test_form_fields_are_strings() -> None:
    assert parse_body(b"a=1&b=true&c=&d&e=x%3Dy=z&f=a+b%2B&&%C3%A9=%c3%a9&", FORM).fields == {
        "a": "1",
        "b": "true",
        "c": "",
        "d": "",
        "e": "x=y=z",
        "f": "a b+",
        "é": "é",
    }


def test_raw_utf8_in_a_form_is_read() -> None:
    assert parse_body("a=é😀".encode(), FORM).fields == {"a": "é😀"}


def test_bracket_names_are_lists_even_with_one_value() -> None:
    raw = b"fixed_ips[]=10.0.0.0/8&x=1&fixed_ips%5B%5D=fc00::/7&one[]=1"
    assert parse_body(raw, FORM).fields == {"fixed_ips[]": ["10.0.0.0/8", "fc00::/7"], "one[]": ["1"], "x": "1"}


@pytest.mark.parametrize(
    "raw",
    [b"a=1&a=2", b"a=1&a=1", b"a=&a=", b"a&a", b"a=1&%61=2", b"=1&=2"],
)
def test_repeated_name_is_refused(raw: bytes) -> None:
    assert status(raw, FORM) == 400


def test_repeated_name_of_a_list_is_a_list() -> None:
    body = parse_body(b"a=1&b=x&%61=2", FORM, repeatable=frozenset({"a"}))
    assert body.fields == {"a": ["1", "2"], "b": "x"}
    assert parse_body(b"a=1", FORM, repeatable=frozenset({"a"})).fields == {"a": ["1"]}
    with pytest.raises(InvalidBody):
        parse_body(b"a=1&b=1&b=2", FORM, repeatable=frozenset({"a"}))


@pytest.mark.parametrize(
    "raw",
    [
        *(b"a=%", b"a=%4", b"a=%zz", b"a=%%41", b"%=1", b"a=%u0041", b"a=%+1", b"a=% 1"),
        *(b"a=%ff", b"a=\xff", b"%c3=1", b"a=%c3&b=%a9", b"a=%c0%80", b"a=%ed%a0%80", b"\xef\xbb\xbfa=1"),
        *(b"a=%00", b"a=\x00", b"%00=1", b"a[]=%00", b"a=%ef%bf%bf"),
    ],
)
def test_form_with_bad_encoding_or_characters_is_refused(raw: bytes) -> None:
    assert status(raw, FORM) == 400


def test_form_has_at_most_1000_fields() -> None:
    assert len(parse_body("&".join(f"a{i}=1" for i in range(1000)).encode(), FORM).fields) == 1000
    assert status("&".join(f"a{i}=1" for i in range(1001)).encode(), FORM) == 400
    assert status(b"a[]=1&" * 1001, FORM) == 400
    assert status(b"&" * MAX_BYTES, FORM) == 400


def test_json_body_has_at_most_1000_fields_and_its_values_may_have_more() -> None:
    members = {f"m{number}": 1 for number in range(1001)}
    assert parse_body(json.dumps({"more": members}).encode(), None).fields == {"more": members}
    with pytest.raises(InvalidBody, match="body must have at most 1000 fields"):
        parse_body(json.dumps(members).encode(), None)


# --- random input

json_like = st.text(alphabet='{}[]",:\\u0aeEdD8-1.9 nltrufs\x00\ufdd0é😀', max_size=200)
content_types = st.sampled_from([None, "application/json", FORM]) | st.text(max_size=40)


@QUIET
@given(st.binary() | json_like.map(str.encode) | json_like.map(lambda text: f'{{"a":{text}}}'.encode()), content_types)
@example(b'{"a":"\\ud800"}', None)
@example(b"%", FORM)
def test_any_bytes_are_parsed_or_refused(raw: bytes, content_type: str | None) -> None:
    error = refusal(raw, content_type)
    if error is None:
        body = parse_body(raw, content_type)
        # An accepted body can be serialized again.
        assert json.loads(json.dumps(body.fields, ensure_ascii=False, allow_nan=False).encode()) == body.fields
        assert body.raw == raw
    else:
        assert error.status in {400, 415}
        assert str(error) == error.message
        assert len(error.message) < 100


clean = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=["\0", *map(chr, NONCHARACTERS)]), max_size=12
)
scalars = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
)
values = st.recursive(
    scalars | clean,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(clean, inner, max_size=4),
    max_leaves=8,
)


@QUIET
@given(st.dictionaries(clean, values, max_size=5), st.booleans(), st.sampled_from([None, 1]))
def test_json_within_the_limits_is_parsed_unchanged(value: Any, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert repr(fields(text)) == repr(json.loads(text))


@QUIET
@given(st.integers() | st.floats(), st.sampled_from(["", "e5", "e300", "0" * 30]))
def test_number_is_kept_or_refused_but_never_changed(number: float, suffix: str) -> None:
    text = f'{{"a":{json.dumps(number)}{suffix}}}'
    try:
        value = fields(text)["a"]
    except InvalidBody:
        return
    assert value == json.loads(text)["a"]
    assert math.isfinite(value)
    assert isinstance(value, float) or -(2**63) <= value < 2**63


@QUIET
@given(st.dictionaries(clean.filter(lambda name: not name.endswith("[]")), clean), st.lists(clean, min_size=1))
def test_form_encoded_by_a_browser_is_parsed_unchanged(pairs: dict[str, str], items: list[str]) -> None:
    raw = urlencode([*pairs.items(), *(("items[]", item) for item in items)]).encode()
    assert parse_body(raw, FORM).fields == {**pairs, "items[]": items}
