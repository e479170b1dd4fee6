"""What is remembered of facts is what the engine computes at that moment, and the cache has limits."""

from functools import partial
from ipaddress import ip_address

import orjson
import pytest
from hypothesis import HealthCheck, given, settings

from sso.core.net import parse_address
from sso.perm.engine.effective_permissions import compute_permissions
from sso.perm.engine.facts import PermissionFacts
from sso.perm.engine.render import Options, earliest_role_end, render
from sso.perm.engine.reserved_names import LIST_TYPES
from sso.perm.engine.secret_rights import secret_rights
from sso.perm.operations.user_data import current_response
from sso.perm.stores.facts_cache import ENTRY_BYTES, MAX_ADDRESSES, FactsCache, FactsVersion
from sso.perm.stores.loaded_facts import MAX_VALUES, LoadedFacts
from tests.kit.long_tests import PERMISSION_EXAMPLES
from tests.perm.evaluation import NOW, application_of, evaluate, facts_of, user
from tests.perm.random_scenarios import ADDRESSES, ScenarioGenerator, scenario_generators

VERSION = FactsVersion("1", 1, 1)

pytestmark = pytest.mark.timeout(120 + PERMISSION_EXAMPLES // 3)


def facts_without_address(parts: dict[str, object]) -> PermissionFacts:
    return facts_of({**parts, "user": {**parts["user"], "ip": None}})  # type: ignore[dict-item]


@settings(max_examples=PERMISSION_EXAMPLES // 3, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenario_generators())
def test_cached_responses_are_those_of_the_engine(generator: ScenarioGenerator) -> None:
    """At random moments, also earlier ones, from random addresses, with random options."""
    parts = generator.scenario()
    application = application_of(parts)
    cache = FactsCache()
    facts = facts_without_address(parts)
    user_id = facts.user.user_id
    cache.add(user_id, application.application_id, VERSION, LoadedFacts(application, facts, True, "", {}), None)
    for _ in range(12):
        now = NOW + generator.random.randint(-2, 95)
        address = generator.one(ADDRESSES)
        options = Options(**{**generator.options(), "with_exp": False, "with_roles": generator.sometimes(0.3)})
        list_type = generator.one(LIST_TYPES)
        parsed = parse_address(address) if address else None
        loaded = cache.find(user_id, application.application_id, VERSION, parsed)
        assert loaded is not None
        exact = facts_of({**parts, "user": {**parts["user"], "ip": address}})
        effective = compute_permissions(application, exact, now)
        assert loaded.effective(now) == effective
        assert loaded.secret_rights(now) == secret_rights(application.schema, exact.own, now)
        expected = {
            "status": "OK",
            "data": render(list_type, application, exact, effective, options),
            "user_id": user_id,
            "expired": earliest_role_end(effective, options),
        }
        assert current_response(loaded, user_id, list_type, options, now) == orjson.dumps(expected)


def loaded_facts(**parts: object) -> LoadedFacts:
    evaluation = evaluate(**parts)
    return LoadedFacts(evaluation.application, evaluation.facts, True, "", {})


def test_a_remembered_value_is_computed_once_until_something_ends() -> None:
    loaded = loaded_facts(own={"roles": [{"name": "r", "expired": NOW + 10}]})
    calls: list[int] = []
    for now in (NOW, NOW + 9, NOW + 10, NOW + 99, NOW):
        loaded.remember("x", now, lambda now=now: calls.append(now))  # type: ignore[misc]
    assert calls == [NOW, NOW + 10, NOW]


def test_values_with_a_ttl_are_remembered_for_a_second() -> None:
    loaded = loaded_facts(roles=[{"name": "r"}], own={"roles": [{"name": "r", "ttl": 60}]})
    assert [loaded.effective(now).roles["r"].ends for now in (NOW, NOW, NOW + 1)] == [NOW + 60, NOW + 60, NOW + 61]


def test_remembered_values_are_limited() -> None:
    loaded = loaded_facts()
    for number in range(100):
        loaded.remember(number, NOW, lambda: b"x" * 1000)
        assert len(loaded.memo.values) <= MAX_VALUES
        assert loaded.memo.rendered_bytes == 1000 * len(loaded.memo.values)


def test_cache_has_at_most_its_entries_and_drops_the_least_recently_used() -> None:
    cache = FactsCache(max_entries=3)
    for number in range(3):
        cache.add(str(number), 10, VERSION, loaded_facts(), None)
    assert cache.find("0", 10, VERSION, None)
    cache.add("3", 10, VERSION, loaded_facts(), None)
    assert len(cache) == 3
    assert cache.find("1", 10, VERSION, None) is None
    assert cache.find("0", 10, VERSION, None)


def test_cache_counts_bytes_that_entries_get_later() -> None:
    cache = FactsCache(max_bytes=10 * ENTRY_BYTES)
    for number in range(100):
        loaded = cache.add(str(number), 10, VERSION, loaded_facts(), None)
        loaded.remember("response", NOW, lambda: b"x" * ENTRY_BYTES)
        assert cache.find(str(number), 10, VERSION, None)  # counts it
        assert cache.bytes <= 11 * ENTRY_BYTES
    assert 1 < len(cache) <= 10


@pytest.mark.parametrize("is_large_at_first", [True, False])
def test_large_entry_displaces_no_others(is_large_at_first: bool) -> None:
    cache = FactsCache(max_bytes=20 * ENTRY_BYTES)
    for number in range(10):
        cache.add(str(number), 10, VERSION, loaded_facts(), None)
    large = loaded_facts()
    if is_large_at_first:
        large.remember("response", NOW, lambda: bytes(30 * ENTRY_BYTES))
    loaded = cache.add("large", 10, VERSION, large, None)
    assert loaded is large
    if not is_large_at_first:
        loaded.remember("response", NOW, lambda: bytes(30 * ENTRY_BYTES))
        assert cache.find("large", 10, VERSION, None) is large
    assert ("large", 10) not in cache
    assert cache.bytes == len(cache) * ENTRY_BYTES
    cache.add("10", 10, VERSION, loaded_facts(), None)
    assert len(cache) == 11


def test_cache_keeps_few_addresses_of_a_user() -> None:
    cache = FactsCache()
    role = {"name": "r", "condition": {"ip": "10.0.0.0/8"}, "meta": {"private_data": {"x": {"value": True}}}}
    cache.add("1001", 10, VERSION, loaded_facts(roles=[role], user={"ip": None}), None)
    for number in range(3 * MAX_ADDRESSES):
        inside, outside = ip_address(f"10.0.0.{number}"), ip_address(f"11.0.0.{number}")
        for address in (inside, outside):
            loaded = cache.find("1001", 10, VERSION, address)
            assert loaded is not None
            assert loaded.facts.user == user({"ip": str(address)})
            assert ("r" in loaded.effective(NOW).roles) is (address is inside)


def test_cache_counts_bytes_of_addresses_that_replace_others() -> None:
    cache = FactsCache(max_bytes=100_000_000)
    role = {"name": "r", "condition": {"ip": "10.0.0.0/8"}}
    cache.add("1001", 10, VERSION, loaded_facts(roles=[role], user={"ip": None}), None)
    for network, size in ((1, 1), (2, 1_000_000)):
        for number in range(MAX_ADDRESSES):
            found = cache.find("1001", 10, VERSION, ip_address(f"10.0.{network}.{number}"))
            assert found is not None
            found.remember("response", NOW, partial(bytes, size))
    cache.find("1001", 10, VERSION, None)
    assert cache.bytes > MAX_ADDRESSES * 1_000_000


def test_another_version_is_not_found() -> None:
    cache = FactsCache()
    cache.add("1", 10, VERSION, loaded_facts(), None)
    for other in (VERSION._replace(rows="2"), VERSION._replace(revision=2), VERSION._replace(epoch=2)):
        assert cache.find("1", 10, other, None) is None
