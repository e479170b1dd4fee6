"""``with_exp``: each entry ends with the seconds until its last source ends, or 0 if one never ends."""

from typing import Any

from tests.perm.evaluation import NOW, evaluate, role_giving, rule


def assigned(*items: Any) -> dict[str, Any]:
    return {"roles": list(items)}


def test_entry_without_expiration_ends_in_0() -> None:
    assert evaluate(roles=[role_giving("default", params="p")]).short(with_exp=True) == ["chat.mute|p:0"]


def test_entry_of_a_limited_role_shows_the_seconds_left() -> None:
    result = evaluate(roles=[role_giving("r")], own=assigned({"name": "r", "expired": NOW + 7}))
    assert result.full(with_exp=True) == ["private_data.chat.mute:7"]


def test_entry_ends_with_its_last_source() -> None:
    limited = assigned({"name": "a", "ttl": 30}, {"name": "b", "expired": NOW + 90})
    assert evaluate(roles=[role_giving("a"), role_giving("b")], own=limited).short(with_exp=True) == ["chat.mute:90"]


def test_entry_with_an_unlimited_source_shows_0() -> None:
    own = assigned({"name": "a", "ttl": 30}) | {"private_data": rule("chat.mute")}
    assert evaluate(roles=[role_giving("a")], own=own).short(with_exp=True) == ["chat.mute:0"]
    result = evaluate(
        roles=[role_giving("a")], own=assigned({"name": "a", "ttl": 30}), schema={"private_data": rule("chat.mute")}
    )
    assert result.short(with_exp=True) == ["chat.mute:0"]


def test_own_entry_shows_the_seconds_left() -> None:
    assert evaluate(own={"private_data": rule("a", expired=NOW + 9)}).short(with_exp=True) == ["a:9"]


def test_schema_value_that_a_role_overrides_does_not_count() -> None:
    """When role a ends, the false value of role b overrides the schema."""
    parts: dict[str, Any] = {
        "schema": {"private_data": rule("chat.mute", params="s")},
        "roles": [role_giving("a"), role_giving("b", value=False, default=True)],
        "own": assigned({"name": "a", "ttl": 30}),
    }
    assert evaluate(**parts).short(with_exp=True) == ["chat.mute:30"]


def test_short_entry_of_public_and_private_data_ends_with_the_last_of_them() -> None:
    result = evaluate(own={"private_data": rule("a", expired=NOW + 5), "public_data": rule("a", expired=NOW + 8)})
    assert result.short(with_exp=True) == ["a:8"]
    assert result.full(with_exp=True) == ["private_data.a:5", "public_data.a:8"]


def test_role_of_two_origins_ends_with_the_last_of_them() -> None:
    result = evaluate(roles=[role_giving("r", condition={"everyone": True})], own=assigned({"name": "r", "ttl": 5}))
    assert result.short(with_exp=True) == ["chat.mute:0"]
    assert result.expired() == 0
