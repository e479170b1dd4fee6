"""Schemas, roles and conditions as fields of forms: whatever is shown as fields and read again is the same document."""

from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sso.console.document_forms import condition_rows, role_rules, schema_table
from sso.core.field_errors import FieldError
from sso.perm.input.conditions import check_condition
from sso.perm.input.roles import read_role
from sso.perm.input.schema import read_schema

TEXTS = st.text("ab1é語 \t\n\r\x1f\x85\u2028\"'{}[]|,.:;=&+%#\\", max_size=8)
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
NAMES = st.sampled_from(("chat", "kick", "mute", "a-b", "Wall_2", "9"))
# A browser sends the fields of a form as UTF-8, with line breaks as CR LF; fields of one line have none.
RULES = st.fixed_dictionaries(
    {"value": SCALARS},
    optional={"params": st.sampled_from(("", "eu", "eu,us")), "protected": st.booleans(), "description": TEXTS},
)
TREES = st.recursive(
    st.dictionaries(NAMES, RULES, max_size=4),
    lambda inner: st.dictionaries(NAMES, inner | RULES, max_size=4),
    max_leaves=8,
)
SECTIONS = ("private_data", "public_data", "other")
WORDS = st.sampled_from(("beta", "x y", " odd ", "a,b", "tab\there", "é", "{}", '"q"')) | TEXTS.filter(bool)
HOURS = st.fixed_dictionaries(
    {},
    optional={
        "days": st.lists(st.sampled_from(("mon", "sat", "sun", "day")), max_size=3),
        "from": st.sampled_from(("10:00", "9:00", "", 5)),
        "to": st.sampled_from(("22:00", "24:00", "02:00", "00:00")),
    },
)
TIMES = st.fixed_dictionaries(
    {},
    optional={
        # The second moment is in an hour that comes twice in Berlin.
        "from": st.sampled_from((0, 1793014200, 1793017800, 1795219201, 10**12, "1")),
        "until": st.sampled_from((1797811200, -1, None)),
        "weekly": st.lists(HOURS, max_size=3) | st.sampled_from(({}, [1])),
        "zone": st.sampled_from(("Europe/Berlin", "UTC", "Asia/Kathmandu", "Mars/Olympus", "", 7)),
    },
)
LEAVES = st.one_of(
    st.builds(lambda word: {"tag": word}, WORDS),
    st.builds(lambda word: {"purchase": word}, WORDS),
    st.just({"domain": "studio.example"}),
    st.just({"ip": "10.0.0.0/8"}),
    st.builds(lambda ids: {"uid": ids}, st.lists(WORDS, max_size=3)),
    st.builds(lambda flag: {"everyone": flag}, st.booleans()),
    st.just({}),
    st.just({"tag": "beta", "domain": "studio.example"}),
    st.builds(lambda time: {"time": time}, TIMES),
    st.builds(lambda time: {"tag": "beta", "time": time}, TIMES),
)
CONDITIONS = st.recursive(
    LEAVES,
    lambda inner: st.builds(
        lambda first, second, key, parts: {**first, **second, key: parts},
        LEAVES, LEAVES, st.sampled_from(("and", "or")), st.lists(inner, max_size=3),
    ) | st.builds(lambda key, parts: {key: parts}, st.sampled_from(("and", "or")), st.lists(inner, max_size=3)),
    max_leaves=6,
)  # fmt: skip

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # on a busy machine


def sent(form: dict[str, str]) -> dict[str, str]:
    """The fields as a browser sends them: lines have no line breaks, and everything passes through the encoding."""
    lines = {name: text.replace("\r", "").replace("\n", "") for name, text in form.items()}
    return dict(parse_qsl(urlencode(lines), keep_blank_values=True, strict_parsing=True))


@PATIENT
@given(st.fixed_dictionaries({}, optional=dict.fromkeys(SECTIONS, TREES)))
@example({"private_data": {}, "public_data": {"chat": {}}})
@example({"private_data": {"chat": {"kick": {"value": True, "protected": False, "description": "", "colour": 1}}}})
@example({"private_data": {"a.b": {"value": 1}, "value": {"kick": {"value": 1}}, "chat": 5, "__proto__": {"value": 2}}})
@example({"private_data": {"value": True}, "secret_data": {"meta": {"canRead": {"value": "all"}}}, "login": []})
def test_schema_survives_the_table(schema: dict[str, Any]) -> None:
    shown = {name: section for name, section in schema.items() if name != "other"}
    assert schema_table.read_table(sent(schema_table.table_fields(shown))) == shown


@PATIENT
@given(st.fixed_dictionaries({}, optional=dict.fromkeys(SECTIONS, TREES)))
@example({"private_data": {"chat": {"kick": {"value": "", "expired": 5}}}, "secret_data": {"a": {"value": 1}}, "x": 1})
def test_rules_of_a_role_survive_the_check_boxes(meta: dict[str, Any]) -> None:
    assert role_rules.read_rules(sent(role_rules.rule_fields(meta))) == meta


@PATIENT
@given(CONDITIONS)
@example({"and": []})
@example({"or": [{"tag": "a"}], "and": [{"tag": "b"}]})
@example({"or": [5, None, {"tga": "x"}, {"tag": 7}, {"tag": ["a"]}]})
@example({"uid": ["a b"], "everyone": False})
@example({"or": [{"tag": "a"}], "time": {"from": 1795219200, "zone": "Europe/Berlin"}})
@example({"and": [{"time": {"until": 60}}], "time": {"weekly": [{"days": ["sat"], "to": "24:00"}]}})
def test_condition_survives_the_rows(condition: dict[str, Any]) -> None:
    form = sent(condition_rows.condition_fields(condition, "condition"))
    assert condition_rows.read_rows(form, "condition") == condition


def test_generated_documents_are_those_of_the_service() -> None:
    """The examples above would prove little if no generated document were valid."""
    valid: set[str] = set()

    @PATIENT
    @given(TREES, CONDITIONS)
    def collect(tree: dict[str, Any], condition: dict[str, Any]) -> None:
        for kind, check in (
            ("schema", lambda: read_schema({"private_data": tree})),
            ("role", lambda: read_role({"name": "r", "meta": {"private_data": tree}})),
            ("condition", lambda: check_condition(condition)),
        ):
            try:
                check()
            except FieldError:
                continue
            if (kind != "condition" and "value" in str(tree)) or (kind == "condition" and "or" in condition):
                valid.add(kind)

    collect()
    assert valid == {"schema", "role", "condition"}


def row(number: int, **fields: str) -> dict[str, str]:
    fields = {"section": "private_data", "default": "false", **fields}
    return {f"{name}:{number}": text for name, text in fields.items()}


def test_rows_of_the_table_are_read_as_they_are_shown() -> None:
    form = row(1, path="chat.kick|eu, us", description=" Kick people ", protected="1")
    form |= row(2, path="title", section="public_data", default="value", value="Major") | row(4, path="  ")
    form |= row(3, path="level", default="value", value="5", more='{"colour": "red"}')
    assert schema_table.read_table(form) == {
        "private_data": {
            "chat": {"kick": {"value": False, "params": "eu, us", "protected": True, "description": "Kick people"}},
            "level": {"value": 5, "colour": "red"},
        },
        "public_data": {"title": {"value": "Major"}},
    }
    assert schema_table.row_numbers(schema_table.remove_row(schema_table.add_row(form), "2")) == [1, 3, 4, 5]


@pytest.mark.parametrize(
    ("form", "field"),
    [
        (row(1, path="chat") | row(2, path="chat"), "path:2"),
        (row(1, path="chat kick"), "path:1"),
        (row(1, path="chat..kick"), "path:1"),
        (row(1, path="chat.value"), "path:1"),
        (row(1, path="chat", section="secrets"), "section:1"),
        (row(1, path="chat", default="value", value=" "), "value:1"),
        (row(1, path="chat", default="value", value='{"a": 1}'), "value:1"),
        (row(1, path="chat", default="value", value='"\\u0000"'), "value:1"),
        (row(1, path="chat", more="[1]"), "path:1"),
        (row(1, path="chat") | {"rest": '{"private_data": 5}'}, "path:1"),
        (row(1, path="chat") | {"rest": "{"}, "rest"),
    ],
)
def test_wrong_row_is_named(form: dict[str, str], field: str) -> None:
    with pytest.raises(FieldError) as caught:
        schema_table.read_table(form)
    assert caught.value.path == (field,)


@pytest.mark.parametrize(
    ("form", "field"),
    [
        ({"give:secret_data.meta": "1"}, "rules"),
        ({"give:private_data": "1"}, "rules"),
        ({"give:private_data.a": "1", "give:private_data.a.b": "1", "rest": '{"private_data": {"a": 1}}'}, "rules"),
        ({"give:private_data.a": "1", "value:private_data.a": ""}, "value:private_data.a"),
    ],
)
def test_wrong_rule_of_a_role_is_named(form: dict[str, str], field: str) -> None:
    with pytest.raises(FieldError) as caught:
        role_rules.read_rules(form)
    assert caught.value.path == (field,)


def test_rows_combine_as_chosen() -> None:
    rows = {"c:member:1": "tag", "c:value:1": " beta ", "c:member:2": "tag", "c:value:2": "staff", "c:member:3": "ip"}
    assert condition_rows.read_rows(rows, "c") == {"and": [{"tag": "beta"}, {"tag": "staff"}]}
    assert condition_rows.read_rows({**rows, "c:match": "or"}, "c") == {"or": [{"tag": "beta"}, {"tag": "staff"}]}
    kept = condition_rows.remove_row({**rows, "c:match": "all"}, "c", "2")
    assert condition_rows.read_rows(kept, "c") == {"tag": "beta"}
    users = {"c:member:1": "uid", "c:value:1": "1001, ann@example.com", "c:member:2": "everyone"}
    assert condition_rows.read_rows(users, "c") == {"uid": ["1001", "ann@example.com"], "everyone": True}
    with pytest.raises(FieldError):
        condition_rows.read_rows({"c:member:1": "json", "c:value:1": '{"or": '}, "c")


def test_choices_are_the_rules_of_the_schema_and_what_the_role_gives_besides() -> None:
    schema = {
        "private_data": {"chat": {"kick": {"value": False, "params": "eu", "description": "Kick"}}},
        "public_data": {"title": {"value": "Recruit", "protected": True}},
    }
    form = role_rules.rule_fields({"private_data": {"old": {"value": True}}})
    old, kick, title = role_rules.rule_choices(schema, form)
    assert (old.path, old.is_declared) == ("old", False)
    assert (kick.path, kick.description) == ("chat.kick", "Kick")
    assert (kick.is_declared, kick.has_params, kick.has_value) == (True, True, False)
    assert (title.key, title.has_value, title.is_protected, title.is_default) == ("public_data.title", True, True, True)


def test_time_window_is_read_from_its_fields() -> None:
    rows = {"c:member:1": "tag", "c:value:1": "beta", "c:zone": "Europe/Berlin", "c:from": "2026-11-21T10:00"}
    rows = condition_rows.add_row(rows, "c:hours") | {"c:sat:1": "1", "c:sun:1": "1", "c:closes:1": "22:00"}
    rows = condition_rows.add_row(rows, "c:hours")  # without a value, it is not read
    time = {"zone": "Europe/Berlin", "from": 1795251600, "weekly": [{"days": ["sat", "sun"], "to": "22:00"}]}
    assert condition_rows.read_rows(rows, "c") == {"tag": "beta", "time": time}
    removed = condition_rows.remove_named_row(rows, "c:hours:1")
    assert condition_rows.read_rows(removed, "c")["time"] == {"zone": "Europe/Berlin", "from": 1795251600}
    for wrong, field in (({"c:from": "soon"}, "c:from"), ({"c:zone": "Mars/Olympus"}, "c:zone")):
        with pytest.raises(FieldError) as caught:
            condition_rows.read_rows(rows | wrong, "c")
        assert caught.value.path == (field,)
