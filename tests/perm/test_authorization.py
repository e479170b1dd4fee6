"""The rights of a caller, and what each credential is valid for, without a database."""

from collections.abc import Collection
from typing import Any

import pytest
from msgspec.structs import replace

from sso.core.errors import Forbidden, NotFound
from sso.core.net import Address, parse_address
from sso.db.errors import Unavailable
from sso.perm.authorization import Authorizer, CallerRights, missing_sections
from sso.perm.caller import Caller
from sso.perm.engine.management_rights import MANAGEMENT_RIGHTS
from sso.perm.engine.required_rights import Operation
from sso.perm.engine.user_facts import UserFacts
from sso.perm.stores.access_keys import AccessKey
from sso.perm.stores.facts_reader import FactsReader, UserAt
from sso.perm.stores.loaded_facts import LoadedFacts
from sso.telemetry.counters import PERMISSION_CHECKS
from tests.perm.evaluation import NOW, application_of, facts_of, role_giving, rule

HERE = parse_address("10.0.0.1")
CENTRAL, GAME, SHOP, ELSEWHERE = 1, 10, 11, 12
PROJECT = {"id": "red_dawn", "applications": [{"id": GAME}, {"id": SHOP}, {"id": 13, "removed": True}]}
ROOT = {"roles": [role_giving("root")], "own": {"roles": ["root"]}}
SCHEMA = {"secret_data": {"application": {"canRead": {"value": True}}}}
OWN_RIGHTS = {"own": {"secret_data": {"application": {"canSave": {"value": True}}}}, "schema": SCHEMA}


def loaded(application_id: int, **parts: Any) -> LoadedFacts:
    parts["application_id"] = application_id
    return LoadedFacts(application_of(parts), facts_of(parts), True, "", {})


class KnownFacts(FactsReader):
    """Facts by application, whoever asks."""

    def __init__(self, *known: LoadedFacts) -> None:
        self._known = {item.application.application_id: item for item in (loaded(CENTRAL), *known)}
        self.addresses: dict[int, Address | None] = {}

    async def load(self, user_id: str, application_id: int, address: Address | None) -> LoadedFacts | None:
        self.addresses[application_id] = address
        return self._known.get(application_id)

    async def load_pairs(self, pairs: Collection[UserAt], address: Address | None) -> dict[UserAt, LoadedFacts]:
        raise NotImplementedError

    async def count_authored(self, user_id: str) -> int:
        raise NotImplementedError


class LostFacts(KnownFacts):
    async def load(self, user_id: str, application_id: int, address: Address | None) -> LoadedFacts | None:
        raise Unavailable("gone")


def caller(user_id: str = "1001", **fields: Any) -> Caller:
    return Caller(user_id, HERE, **{"now": NOW, "has_factor": True, **fields})


async def rights(who: Caller, *known: LoadedFacts, at: int | None = None) -> CallerRights:
    return await Authorizer(KnownFacts(*known)).caller_rights(who, at)


def key_of(application_id: int) -> AccessKey:
    return AccessKey("k" * 24, application_id)


async def test_caller_rights_raise_unavailable_if_the_database_is_lost() -> None:
    for application_id in (None, 1, 10):
        with pytest.raises(Unavailable):
            await Authorizer(LostFacts()).caller_rights(caller(), application_id)


async def test_is_root() -> None:
    root = loaded(CENTRAL, **ROOT)
    for who, facts, expected in (
        (caller(), root, True),
        (caller(), loaded(CENTRAL), False),
        (caller(second_factor_missing=True), root, False),
        (caller(""), root, False),
        (caller("", is_operator=True), loaded(CENTRAL), True),
        (caller(is_operator=True), loaded(CENTRAL), True),
    ):
        assert await Authorizer(KnownFacts(facts)).is_root(who) is expected
        assert (await rights(who, facts)).is_root is (expected or (not who.user_id and not who.second_factor_missing))


async def test_facts_of_a_request_replace_those_of_the_service() -> None:
    authorizer = Authorizer(KnownFacts())
    assert authorizer.with_facts(None) is authorizer
    assert await authorizer.with_facts(KnownFacts(loaded(CENTRAL, **ROOT))).is_root(caller())


@pytest.mark.parametrize(("signed_by", "at_central"), [("", HERE), ("k" * 24, None)])
async def test_signed_address_counts_at_the_target_only(signed_by: str, at_central: Address | None) -> None:
    facts = KnownFacts(loaded(GAME))
    who = caller(address_signed_by=signed_by)
    await Authorizer(facts).caller_rights(who, GAME)
    assert facts.addresses == {CENTRAL: at_central, GAME: HERE}
    facts.addresses.clear()
    await Authorizer(facts).is_root(who)
    assert facts.addresses == {CENTRAL: at_central}


async def test_each_load_of_rights_is_counted() -> None:
    before = PERMISSION_CHECKS.counts.get(("caller",), 0)
    await rights(caller(), loaded(GAME), at=GAME)
    assert PERMISSION_CHECKS.counts["caller",] == before + 1


# Rights in secret_data.


async def test_secret_rights_at_the_target() -> None:
    target = loaded(GAME, **OWN_RIGHTS)
    assert (await rights(caller(), target, at=GAME)).granted.secret.application == {"canRead", "canSave"}
    without_target = (await rights(caller(), target)).granted
    assert (without_target.secret.application, without_target.service) == (frozenset(), False)


async def test_caller_without_the_second_factor_and_guest_have_the_rights_of_everyone() -> None:
    target = loaded(GAME, **OWN_RIGHTS)
    assert (await rights(caller(second_factor_missing=True), target, at=GAME)).granted.secret.application == {"canRead"}
    guest = replace(target, facts=replace(target.facts, user=UserFacts("1001", cannot_administer=True)))
    assert (await rights(caller(), guest, at=GAME)).granted.secret.application == {"canRead"}


async def test_caller_without_the_second_factor_has_no_rights_at_the_central_application() -> None:
    central = loaded(CENTRAL, own={"private_data": rule("can_create_app")})
    assert (await rights(caller(), central)).allow(Operation.APPLICATION_CREATE)
    granted = (await rights(caller(second_factor_missing=True), central)).granted
    assert (granted.central.rules, granted.central.application_id, granted.central.now) == ({}, CENTRAL, NOW)


# Rights of the management API.


@pytest.mark.parametrize(
    ("in_management", "target", "expected"),
    [
        (True, GAME, MANAGEMENT_RIGHTS),
        (True, None, MANAGEMENT_RIGHTS),
        (True, CENTRAL, {"can_view_projects", "can_manage_projects"}),
        (False, GAME, set()),
    ],
)
async def test_management_rights_count_in_the_management_api(
    in_management: bool, target: int | None, expected: set[str]
) -> None:
    own = {"private_data": {name: {"value": True} for name in (*MANAGEMENT_RIGHTS, "can_create_app")}}
    who = caller(in_management=in_management)
    found = await rights(who, loaded(CENTRAL, own=own), loaded(GAME), at=target)
    assert found.granted.management == expected
    assert found.in_management is in_management
    assert ("can_manage_applications" in str(found.refusal(Operation.SCHEMA_MODIFY))) is in_management


# What a credential is valid for.


async def test_access_key_is_valid_for_its_own_application_only() -> None:
    for who in (caller(key=key_of(GAME)), caller("", key=key_of(GAME), has_factor=False, key_replaces_factor=True)):
        assert (await rights(who, loaded(GAME), at=GAME)).target.application.application_id == GAME
        for other in (SHOP, None):
            with pytest.raises(Forbidden, match="an access key is valid for its own application only"):
                await rights(who, loaded(SHOP), at=other)


SERVICE_REFUSED = "the service JWT is valid for its own application and those of its project only"


@pytest.mark.parametrize(
    ("service", "target", "home", "is_valid", "is_service"),
    [
        (GAME, GAME, None, True, True),
        (GAME, SHOP, PROJECT, True, True),
        (13, SHOP, PROJECT, False, False),  # a removed application of the project
        (ELSEWHERE, SHOP, PROJECT, False, False),
        (GAME, SHOP, None, False, False),  # an application of no project
        (None, GAME, PROJECT, False, False),
    ],
)
async def test_service_jwt_replaces_the_factor_in_its_project(
    service: int | None, target: int, home: Any, is_valid: bool, is_service: bool
) -> None:
    facts = loaded(target, home=home)
    who = caller(service_id=service, has_factor=False)
    if is_valid:
        assert (await rights(who, facts, at=target)).granted.service is is_service
    else:
        with pytest.raises(Forbidden, match=SERVICE_REFUSED):
            await rights(who, facts, at=target)
    # With the factor, the request is answered with the rights of the user.
    assert (await rights(who._replace(has_factor=True), facts, at=target)).granted.service is is_service


async def test_service_jwt_of_a_web_site_is_valid_for_its_own_application_only() -> None:
    who = caller(service_id=GAME, has_factor=False, is_site=True)
    assert (await rights(who, loaded(GAME), at=GAME)).granted.service
    with pytest.raises(Forbidden, match=SERVICE_REFUSED):
        await rights(who, loaded(SHOP, home=PROJECT), at=SHOP)


async def test_service_jwt_of_an_application_that_does_not_exist_is_not_valid_elsewhere() -> None:
    who = caller(service_id=ELSEWHERE, has_factor=False)
    assert (await rights(who, at=ELSEWHERE)).target_facts is None  # its own one, which was deleted
    for target in (99, None):
        with pytest.raises(Forbidden, match=SERVICE_REFUSED):
            await rights(who, at=target)


# Requirements.


async def test_only_root_learns_that_the_target_does_not_exist() -> None:
    root = await rights(caller(), loaded(CENTRAL, **ROOT), at=99)
    with pytest.raises(NotFound, match="application not found"):
        _ = root.target
    with pytest.raises(NotFound, match="application not found"):
        root.require_on_target(Operation.APPLICATION_SAVE)
    user = await rights(caller(), at=99)
    with pytest.raises(Forbidden) as refused:
        _ = user.target
    assert refused.value.message == Forbidden.message
    with pytest.raises(Forbidden, match="canSave is required"):
        user.require_on_target(Operation.APPLICATION_SAVE)


@pytest.mark.parametrize(
    ("parts", "at"),
    [
        ({"member": {"project": ["r"]}, "roles": "project.can_manage_applications"}, {"project_id": "red_dawn"}),
        (
            {"member": {"applications": {"10": ["r"]}}, "roles": "app.can_manage_app_api_keys"},
            {"project_id": "red_dawn", "application_id": GAME},
        ),
        (
            {"member": {"groups": {"a" * 24: ["r"]}}, "roles": "group.can_manage_group"},
            {"project_id": "red_dawn", "group_id": "a" * 24},
        ),
    ],
)
async def test_require_names_the_missing_right(parts: dict[str, Any], at: dict[str, Any]) -> None:
    operation = {
        "project.can_manage_applications": Operation.APPLICATION_SAVE,
        "app.can_manage_app_api_keys": Operation.ACCESS_KEY,
        "group.can_manage_group": Operation.GROUP_ACCESS,
    }[parts["roles"]]
    project = PROJECT | {"member": parts["member"], "groups": [{"id": "a" * 24}]}
    central = loaded(CENTRAL, roles=[role_giving("r", parts["roles"])], projects=[project])
    (await rights(caller(), central)).require(operation, **at)
    for name in at:
        with pytest.raises(Forbidden, match=f"{parts['roles']} is required|or .* is required"):
            (await rights(caller(), central)).require(operation, **{**at, name: None})
    with pytest.raises(Forbidden, match=parts["roles"]):
        (await rights(caller())).require(operation, **at)


async def test_require_on_target_uses_its_project_and_refuses_a_removed_one() -> None:
    project = PROJECT | {"member": {"applications": {"10": ["r"]}}}
    central = loaded(CENTRAL, roles=[role_giving("r", "app.can_manage_app_api_keys")], projects=[project])
    found = await rights(caller(), central, loaded(GAME, home=PROJECT), at=GAME)
    assert found.require_on_target(Operation.ACCESS_KEY).project_id == "red_dawn"
    shop = await rights(caller(), central, loaded(SHOP, home=PROJECT), at=SHOP)
    with pytest.raises(Forbidden, match=r"canCreateJwt or app\.can_manage_app_api_keys is required"):
        shop.require_on_target(Operation.ACCESS_KEY)
    for gone in (loaded(GAME, removed=True, home=PROJECT), loaded(GAME, home=PROJECT | {"removed": True})):
        removed = await rights(caller(), loaded(CENTRAL, **ROOT), gone, at=GAME)
        with pytest.raises(Forbidden, match="removed"):
            removed.require_on_target(Operation.ACCESS_KEY)
        assert removed.require_on_target(Operation.ACCESS_KEY, allow_removed=True).is_removed


def test_missing_sections_are_named() -> None:
    assert str(missing_sections("canRead", {"login", "secret_data", "roles"})) == "canRead of roles, secret is required"
    assert str(missing_sections("canWrite", ())) == "canWrite of roles, private, public or secret is required"
