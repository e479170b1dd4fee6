"""The permission sections of `sso apply`: by natural key, in one transaction, repeatable."""

from pathlib import Path
from typing import Any

import orjson
import pytest
import trio

from sso.audit import trail
from sso.audit.trail import AuditActor, AuditFilter
from sso.core.field_errors import FieldError
from sso.core.keys import GENERATE, key_id, private_pem, public_pem
from sso.core.net import parse_address
from sso.db.statement import Statement
from sso.perm.changes.last_administrators import LastAdministrator
from sso.perm.stores.applications import create_application, private_key, read_application_row
from sso.perm.stores.memberships import read_membership
from sso.perm.stores.projects import read_project as read_project
from sso.perm.stores.projects import remove_project
from sso.perm.stores.user_data import read_record
from sso.services import Services
from sso.state.export import export
from sso.state.summary import ApplyCounts
from tests.state.studio import ANN, BOB, SECRET, TESTERS, apply, rules, studio, traces

LOCAL = parse_address("127.0.0.1")
_ROLE = Statement("SELECT * FROM roles WHERE application_id = :application_id AND name = :name")
_KEYS = Statement("SELECT application_id, comment, modified > created AS described FROM access_keys")


async def refused(services: Services, document: dict[str, Any]) -> str:
    """Returns the error text of a refused document."""
    with pytest.raises(FieldError) as caught:
        await apply(services, document)
    assert "\n" not in str(caught.value)
    return str(caught.value)


async def test_document_creates_all_sections_and_a_second_run_changes_nothing(services: Services) -> None:
    counts = await apply(services, studio())
    assert (counts.created, counts.unchanged) == (2 + 1 + 1 + 1 + 1 + 1, 0)  # the rest is changed
    assert counts.warnings == ()
    assert "can_create_projects" in await rules(services, ANN)
    assert "red_dawn/project.can_manage_project" in await rules(services, ANN)
    assert "red_dawn/project.can_view_project" in await rules(services, BOB)
    assert await rules(services, BOB, 40) == ["chat.ban|a,b", "chat.mute", "title"]
    assert await rules(services, ANN, 40) == ["chat.mute"]  # through the group and the project's settings
    key = await services.permissions.access_keys.authenticate(SECRET)
    assert key is not None
    assert key.application_id == 40
    await check_audit_trail(services)
    before = await traces(services)
    second = await apply(services, studio())
    assert (second.created, second.changed) == (0, 0)
    assert second.unchanged == counts.created + counts.changed + counts.unchanged
    assert await traces(services) == before


async def check_audit_trail(services: Services) -> None:
    """Entries name the operator and contain no secret."""
    entries = await trail.read(services.database, AuditFilter(limit=200))
    assert {entry["user_id"] for entry in entries} == {""}
    assert {entry["operation"] for entry in entries} >= {
        "project.publish",
        "project.save",
        "application.create",
        "schema.save",
        "role.save",
        "group.create",
        "membership.save",
        "permissions.save",
        "access_key.create",
    }
    assert SECRET not in str(entries)


async def test_concurrent_runs_are_serialized(services: Services) -> None:
    results: list[ApplyCounts] = []

    async def run() -> None:
        results.append(await apply(services, studio()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        nursery.start_soon(run)
    assert sorted(counts.created > 0 for counts in results) == [False, True]
    assert sorted(counts.changed > 0 for counts in results) == [False, True]


async def test_admins_remain_if_memberships_list_no_users(services: Services) -> None:
    document = studio() | {"memberships": [{"id": "red_dawn", "users": [], "allow": [], "disallow": []}]}
    for _ in range(2):
        counts = await apply(services, document)
        membership = await read_membership(services.database, "red_dawn")
        assert membership["users"] == [{"user_id": ANN, "roles": {"project": ["admin"]}}]
    assert counts.changed == 0


async def test_admins_are_added_to_stored_members(services: Services) -> None:
    await apply(services, studio())
    await apply(services, {"projects": [{"title": "Red Dawn", "admins": ["bob@example.com"]}]})
    membership = await read_membership(services.database, "red_dawn")
    assert [user["roles"]["project"] for user in membership["users"]] == [["admin"], ["viewer", "admin"]]
    assert membership["allow"] == [TESTERS]


async def test_records_and_fields_that_are_not_named_are_kept(services: Services) -> None:
    await apply(services, studio())
    await apply(
        services,
        {
            "projects": [{"title": "Red Dawn"}],
            "applications": [{"application_id": 40, "name": "Tanks 2"}],
            "groups": [{"group_id": TESTERS, "tags": ["project", "more"]}],
            "memberships": [{"id": "red_dawn", "allow": []}],
            "permissions": [{"user_id": BOB, "application_id": 40, "data": {"public_data": {}}}],
            "roles": {"40": [{"name": "moderator", "params": "x"}]},
        },
    )
    application = await read_application_row(services.database, 40)
    assert application is not None
    assert (application["name"], application["description"]) == ("Tanks 2", "A game")
    assert application["service_meta"] == {"name": "tanks", "tags": ["game"]}
    project = await read_project(services.database, "red_dawn")
    assert project is not None
    assert project["settings"]["allowed_domains"] == ["example.com"]
    assert project["aliases"] == ["rd"]
    membership = await read_membership(services.database, "red_dawn")
    assert (len(membership["users"]), membership["allow"], membership["disallow"]) == (2, [], [])
    record = await read_record(services.database, BOB, 40)
    assert (record["public_data"], record["roles"]) == ({}, [{"name": "moderator", "ttl": 60}])
    role = await services.database.row(_ROLE, application_id=40, name="moderator")
    assert role is not None
    assert role["params"] == "x"
    assert role["meta"] == studio()["roles"]["40"][0]["meta"]


BAD: list[tuple[dict[str, Any], str]] = [
    ({"groups": [{"group_id": TESTERS, "title": "!"}]}, "groups[0].title: must be 1 to 32 Latin letters"),
    ({"groups": [{"group_id": "x"}]}, "groups[0].group_id: must be a group id"),
    ({"groups": [{"group_id": TESTERS}]}, "groups[0].project_id: is required"),
    ({"groups": [{"group_id": TESTERS, "project_id": "no", "title": "T"}]}, "groups[0].project_id: there is no"),
    (
        {"groups": [{"group_id": TESTERS, "conditions": [{"title": "x", "condition": {"ip": "10.0.0.0/8"}}]}]},
        "groups[0].conditions[0].condition",
    ),
    ({"projects": [{"title": "Game"}]}, "projects[0].title: this title is reserved"),
    ({"projects": [{"title": "A", "admins": ["777"]}]}, "projects[0].admins[0]: there is no such user"),
    ({"projects": [{"title": "A", "tags": []}]}, "projects[0].tags: unknown field"),
    ({"projects": [{"title": "A"}, {"title": "a"}]}, "projects[1].title: appears twice"),
    (
        {"projects": [{"title": "A", "settings": {"services": {"1": {"groups": []}}}}]},
        "projects[0].settings.services.1: is no application of this project",
    ),
    ({"applications": [{"name": "A"}]}, "applications[0].application_id: is required"),
    ({"applications": [{"application_id": 77}]}, "applications[0].name: is required"),
    (
        {"applications": [{"application_id": 77, "name": "A", "project_id": "no"}]},
        "applications[0].project_id: there is no such project",
    ),
    (
        {"applications": [{"application_id": 1, "project_id": "red_dawn"}], "projects": [{"title": "Red Dawn"}]},
        "applications[0].project_id: the central application belongs to no project",
    ),
    ({"applications": [{"application_id": 77, "name": "A", "service_meta": {"url": "x"}}]}, "applications[0].serv"),
    ({"schemas": {"77": {}}}, "schemas.77: there is no such application"),
    ({"schemas": {"x": {}}}, "schemas.x: a key must be an application id"),
    ({"schemas": {"1": {"private_data": {"a": 1}}}}, "schemas.1.private_data.a: must be an object"),
    ({"schemas": {"1": {"data": {}}}}, "schemas.1.data: unknown field"),
    ({"roles": {"77": []}}, "roles.77: there is no such application"),
    ({"roles": {"1": {}}}, "roles.1: must be an array"),
    ({"roles": {"1": [{"name": "a.b"}]}}, "roles.1[0].name: a name must be"),
    ({"roles": {"1": [{"name": "a"}, {"name": "a"}]}}, "roles.1[1].name: appears twice"),
    ({"roles": {"1": [{"name": "root", "protected": False}]}}, "roles.1[0]: the role root"),
    ({"memberships": [{"id": "no"}]}, "memberships[0].id: there is no such project"),
    ({"memberships": [{}]}, "memberships[0].id: is required"),
    (
        {"projects": [{"title": "A"}], "memberships": [{"id": "a", "users": [{"user_id": "1", "roles": []}]}]},
        "memberships[0].users[0].roles: must be an object",
    ),
    (
        {"projects": [{"title": "A"}], "memberships": [{"id": "a", "users": [{"user_id": "1"}], "allow": ["x"]}]},
        "memberships[0].allow[0]: must be a group id",
    ),
    ({"permissions": [{"user_id": "7", "application_id": 1, "data": {}}]}, "permissions[0].user_id: there is no"),
    ({"permissions": [{"user_id": "7", "data": {}}]}, "permissions[0].application_id: is required"),
    ({"permissions": [{"user_id": ANN, "application_id": 1}]}, "permissions[0].data: is required"),
    (
        {"permissions": [{"user_id": ANN, "application_id": 1, "data": {"private_data": {"value": 1}}}]},
        "permissions[0].data.private_data",
    ),
    ({"access_keys": [{"application_id": 1, "hash": "short"}]}, "access_keys[0].hash: must be 32 to 512"),
    (
        {"access_keys": [{"application_id": 1, "hash": "a" * 16 + ".b.c" + "d" * 16}]},
        "access_keys[0].hash: must not contain",
    ),
    ({"access_keys": [{"application_id": 77, "hash": SECRET}]}, "access_keys[0].application_id: there is no"),
    ({"nonsense": []}, "nonsense: unknown section"),
    ({"groups": {}}, "groups: must be an array"),
]


async def test_invalid_document_names_the_location_and_changes_nothing(services: Services) -> None:
    await apply(services, {"users": studio()["users"], "roles": {"1": []}})
    before = await traces(services)
    for change, message in BAD:
        assert (await refused(services, {"users": [{"login": "new@example.com"}]} | change)).startswith(message)
        assert await services.users.get_by_login("new@example.com") is None
    assert await traces(services) == before


AGAINST: list[tuple[dict[str, Any], str]] = [
    (
        {"permissions": [{"user_id": BOB, "application_id": 40, "data": {"roles": ["no"]}}]},
        "permissions[0].data.roles[0]: there is no role no",
    ),
    (
        {"permissions": [{"user_id": name, "application_id": 40, "data": {}} for name in (BOB, "bob@example.com")]},
        "permissions[1]: appears twice",
    ),
    ({"groups": [{"group_id": TESTERS, "project_id": "other"}]}, "groups[0].project_id: a group cannot move"),
    ({"projects": [{"title": "RD"}]}, "projects[0]: title or aliases: already used by another project"),
    (
        {"applications": [{"application_id": 41, "name": "Tanks", "project_id": "red_dawn"}]},
        "applications[0].name: another application of the project already has this name",
    ),
    (
        {"access_keys": [{"application_id": 40, "hash": f"{SECRET}{n}"} for n in range(2)]},
        "access_keys[1]: an application has at most 2 access keys",
    ),
    ({"access_keys": [{"application_id": 1, "hash": SECRET}]}, "access_keys[0].hash: this key belongs to another"),
    (
        {"schemas": {"40": {"private_data": {"chat": {"mute": {"value": False, "protected": True}}}}}},
        "schemas.40.chat.mute: the public role moderator holds this rule",
    ),
    ({"projects": [{"title": "Red Dawn", "author": ANN}]}, "projects[0].author: cannot be changed"),
]


async def test_conflict_with_stored_records_names_the_location(services: Services) -> None:
    await apply(services, studio() | {"projects": [*studio()["projects"], {"title": "Other"}]})
    before = await traces(services)
    for change, message in AGAINST:
        assert (await refused(services, change)).startswith(message)
    assert await traces(services) == before


async def test_role_and_its_rule_can_become_protected_together(services: Services) -> None:
    await apply(services, studio())
    protected = {"private_data": {"chat": {"mute": {"value": False, "protected": True}}}}
    document = studio() | {"schemas": {"40": protected}}
    document["roles"]["40"][0]["protected"] = True
    assert "cannot be granted through a project" in await refused(services, document)  # which it still says itself
    counts = await apply(
        services, {"schemas": {"40": protected}, "roles": {"40": [{"name": "moderator", "protected": True}]}}
    )
    assert counts.changed == 2
    project = await read_project(services.database, "red_dawn")
    assert project is not None
    assert project["settings"]["services"]["40"]["groups"] == []  # what is protected is not had through a project


async def test_schema_may_contain_roles(services: Services) -> None:
    application = {"application_id": 40, "name": "Tanks"}
    schema = {"private_data": {"fly": {"value": False}}, "roles": {"pilot": {"params": "x"}}, "version": 9}
    document = {"applications": [application], "schemas": {"40": schema}}
    assert (await apply(services, document)).created == 2
    before = await traces(services)
    assert (await apply(services, document)).unchanged == 3
    assert await traces(services) == before


async def test_ignored_fields_are_reported_as_warnings(services: Services) -> None:
    application = {"application_id": 40, "name": "Tanks", "settings": {"colour": "red"}}
    permission = {"user_id": ANN, "application_id": 40, "data": {"strange": 1}}
    document = {"users": studio()["users"], "applications": [application], "permissions": [permission]}
    assert (await apply(services, document)).warnings == (
        "applications[0].settings.colour: unknown field, ignored",
        "permissions[0].data.strange: unknown field, ignored",
    )


async def test_application_gets_the_requested_id_and_others_do_not(services: Services) -> None:
    ids = [10, 11, 13, 2**31 - 1]
    await apply(services, {"applications": [{"application_id": n, "name": f"App {n}"} for n in ids]})

    async def create(name: str) -> int:
        async def work(tx: Any) -> int:
            row = await create_application(tx, AuditActor(), services.keyring, {"name": name})
            return int(row["application_id"])

        return await services.database.transaction(work)

    assert [await create("a"), await create("b")] == [12, 14]


async def test_private_key_is_encrypted_and_kept(services: Services) -> None:
    key = GENERATE["ES256"]()
    meta = {"private_key": private_pem(key), "public_key": public_pem(key.public_key())}
    document = {"applications": [{"application_id": 40, "name": "Tanks", "service_meta": meta}]}
    await apply(services, document)
    assert (await apply(services, document)).unchanged == 1
    row = await read_application_row(services.database, 40)
    assert row is not None
    assert private_key(services.keyring, row) == private_pem(key)
    assert "private_key" not in row["service_meta"]
    token = await services.permissions.service_jwts.issue(40, private_pem(key), int(services.database.clock.now()))
    assert await services.permissions.service_jwts.verify(token, LOCAL) == (40, None)
    published = await services.permissions.application_keys.published(40)
    assert [item["id"] for item in published] == [key_id(key.public_key())]
    removed = {"applications": [{"application_id": 40, "service_meta": {"private_key": ""}}]}
    assert (await apply(services, removed)).changed == 1


async def test_new_comment_of_an_access_key_keeps_its_value(services: Services) -> None:
    await apply(services, studio())
    counts = await apply(services, {"access_keys": [{"application_id": 40, "hash": SECRET, "comment": "new"}]})
    assert counts.changed == 1
    assert [tuple(row) for row in await services.database.rows(_KEYS)] == [(40, "new", True)]
    assert (await apply(services, {"access_keys": [{"application_id": 40, "hash": SECRET}]})).unchanged == 1


async def test_removed_records_are_not_restored(services: Services) -> None:
    await apply(services, studio())
    await services.database.transaction(lambda tx: remove_project(tx, AuditActor(), "red_dawn"))
    for section, place in [
        ("projects", "projects[0]"),
        ("applications", "applications[0]"),
        ("schemas", "schemas.40"),
        ("roles", "roles.40"),
        ("groups", "groups[0]"),
        ("memberships", "memberships[0]"),
        ("access_keys", "access_keys[0]"),
    ]:
        change = studio()[section]
        if section == "applications":
            change[0]["description"] = "new"
        assert await refused(services, {section: change}) == f"{place}: is removed"


async def test_members_must_exist_and_user_limits_are_enforced(services: Services) -> None:
    document = studio()
    document["roles"]["40"].append({"name": "captain", "user_limit": 1})
    document["permissions"] = [
        {"user_id": user, "application_id": 40, "data": {"roles": ["captain"]}} for user in (ANN, BOB)
    ]
    assert await refused(services, document) == "permissions[1].data.roles: captain can have at most 1 users"

    document = studio()
    document["roles"]["1"] = [{"name": "viewer", "user_limit": 1}]
    document["memberships"][0]["users"].append({"user_id": ANN, "roles": {"project": ["viewer"]}})
    assert (await refused(services, document)).startswith("memberships[0].roles: viewer can have at most 1 users")

    document = studio()
    document["memberships"][0]["users"].append({"user_id": "5009", "roles": {"project": ["viewer"]}})
    assert await refused(services, document) == "memberships[0].users: there is no user 5009"


async def test_document_keeps_an_administrator_of_a_project(services: Services) -> None:
    await apply(services, studio())
    without = {"memberships": [{"id": "red_dawn", "users": []}]}
    with pytest.raises(LastAdministrator, match="the project would have no administrator with access to it"):
        await apply(services, without)
    with pytest.raises(LastAdministrator, match="no administrator with access"):
        await apply(services, {"roles": {"1": [{"name": "admin", "condition": {"tag": "nobody"}}]}})
    await apply(services, without | {"projects": [{"title": "Red Dawn", "admins": ["bob@example.com"]}]})
    membership = await read_membership(services.database, "red_dawn")
    assert membership["users"] == [{"user_id": BOB, "roles": {"project": ["admin"]}}]


async def test_group_leaves_the_lists_of_its_project_and_loses_its_tag_together(services: Services) -> None:
    await apply(services, studio())
    document: dict[str, Any] = {
        "groups": [{"group_id": TESTERS, "title": "Old testers", "tags": ["more"]}],
        "memberships": [{"id": "red_dawn", "allow": []}],
    }
    text = await refused(services, {"groups": document["groups"]})
    assert text.startswith("groups[0]: the group is in the allow or disallow list of its project")
    assert (await apply(services, document)).changed == 2
    exported = await export(services.database)
    assert (exported["groups"][0]["tags"], exported["memberships"][0]["allow"]) == (["more"], [])
    assert (await apply(services, document)).changed == 0


async def test_application_settings_are_merged_by_key(services: Services) -> None:
    await apply(services, studio())
    gdpr = {"char_sources": ["https://a.example.com"]}
    document = {"applications": [{"application_id": 40, "settings": {"gdpr": gdpr}}]}
    assert (await apply(services, document)).changed == 1
    row = await read_application_row(services.database, 40)
    assert row is not None
    assert row["settings"] == {"gdpr": gdpr, "restricted_domains": ["example.com"]}
    assert (await apply(services, document)).unchanged == 1


async def test_move_removes_access_keys_except_those_in_the_document(services: Services) -> None:
    await apply(services, studio())
    target = {"projects": [{"title": "Blue Dusk"}]}
    await apply(services, target | {"applications": [{"application_id": 40, "project_id": "blue_dusk"}]})
    assert await services.database.rows(_KEYS) == []
    moved = {"applications": [{"application_id": 40, "project_id": "red_dawn"}]}
    await apply(services, moved | {"access_keys": [{"application_id": 40, "hash": SECRET}]})
    assert [tuple(row) for row in await services.database.rows(_KEYS)] == [(40, "", False)]


async def test_demo_document_can_be_applied(services: Services) -> None:
    document = orjson.loads((Path(__file__).parents[2] / "scripts" / "demo.json").read_bytes())
    await apply(services, document)
    assert (await apply(services, document)).changed == 0
    demo = await services.users.get_by_login("demo@example.com")
    player = await services.users.get_by_login("player@example.com")
    assert demo is not None
    assert player is not None
    mine = await rules(services, demo.user_id)
    assert {"can_create_projects", "red_dawn/applications/10/app.can_manage_app_api_keys"} <= set(mine)
    assert await rules(services, player.user_id, 10) == ["chat.mute|lobby", "chat.write", "maps.unreleased"]
