"""``with_exp``: every entry ends in the seconds of its longest-lived source, 0 when one is unlimited."""

from typing import Any

from tests.perm.world import NOW, giving, rule, world


def assigned(*items: Any) -> dict[str, Any]:
    return {"roles": list(items)}


def test_entry_without_expiration_ends_in_0() -> None:
    assert world(roles=[giving("default", params="p")]).short(with_exp=True) == ["chat.mute|p:0"]


def test_entry_of_a_limited_role() -> None:
    made = world(roles=[giving("r")], own=assigned({"name": "r", "expired": NOW + 7}))
    assert made.full(with_exp=True) == ["private_data.chat.mute:7"]


def test_entry_lives_as_long_as_its_longest_lived_source() -> None:
    limited = assigned({"name": "a", "ttl": 30}, {"name": "b", "expired": NOW + 90})
    assert world(roles=[giving("a"), giving("b")], own=limited).short(with_exp=True) == ["chat.mute:90"]


def test_one_unlimited_source_makes_it_0() -> None:
    own = assigned({"name": "a", "ttl": 30}) | {"private_data": rule("chat.mute")}
    assert world(roles=[giving("a")], own=own).short(with_exp=True) == ["chat.mute:0"]
    made = world(
        roles=[giving("a")], own=assigned({"name": "a", "ttl": 30}), schema={"private_data": rule("chat.mute")}
    )
    assert made.short(with_exp=True) == ["chat.mute:0"]


def test_own_entry_with_expiry() -> None:
    assert world(own={"private_data": rule("a", expired=NOW + 9)}).short(with_exp=True) == ["a:9"]


def test_source_that_a_role_hides_does_not_count() -> None:
    """When role a ends, role b says no: the schema's value would not come back."""
    parts: dict[str, Any] = {
        "schema": {"private_data": rule("chat.mute", params="s")},
        "roles": [giving("a"), giving("b", value=False, default=True)],
        "own": assigned({"name": "a", "ttl": 30}),
    }
    assert world(**parts).short(with_exp=True) == ["chat.mute:30"]


def test_public_and_private_data_together_live_as_long_as_one_of_them() -> None:
    roles = [giving("r", "a"), {"name": "s", "meta": {"public_data": rule("a")}}]
    made = world(roles=roles, own=assigned({"name": "r", "expired": NOW + 5}, {"name": "s", "expired": NOW + 8}))
    assert made.short(with_exp=True) == ["a:8"]
    assert made.full(with_exp=True) == ["private_data.a:5", "public_data.a:8"]


def test_role_that_comes_in_two_ways_lives_as_long_as_one_of_them() -> None:
    made = world(roles=[giving("r", condition={"everyone": True})], own=assigned({"name": "r", "ttl": 5}))
    assert made.short(with_exp=True) == ["chat.mute:0"]
    assert made.expired() == 0
