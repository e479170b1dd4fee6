"""The table of required permissions (§5.5): for every row, callers who are allowed and callers who are refused.

More than 300 lines, because it contains the whole table.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from sso.perm.stores.builtin_roles import GENERIC_RULES, ROOT_RULES
from tests.perm.endpoints.conftest import ApiResponse, ApiUser, Studio

_numbers = itertools.count(1)
_FIRST_APPLICATION_ID = 1_600_000_000
SECRET = ("canCreateJwt", "canModifySchema", "canRead", "canReadSchema", "canSave", "canSeeRoleList")


@dataclass(frozen=True)
class Scene:
    """A project with an application, which is a service too, and a group."""

    studio: Studio
    project: str
    app: int
    group: str

    def give(self, user: ApiUser, *rights: str) -> None:
        """``root:rule``, ``secret:rule``, ``project:rule`` for the whole project, ``app:rule`` and ``group:rule``
        for the application or group alone."""
        kinds: dict[str, list[str]] = {}
        for right in rights:
            kind, _, rule = right.partition(":")
            kinds.setdefault(kind, []).append(rule)
        if "root" in kinds:
            self.studio.give_rules(user, *kinds["root"])
        if "secret" in kinds:
            self.studio.give_secret(user, self.app, *kinds["secret"])
        roles: dict[str, Any] = {}
        if "project" in kinds:
            roles["project"] = [f"only_{rule}" for rule in kinds["project"]]
        for kind, level, resource in (("app", "applications", self.app), ("group", "groups", self.group)):
            if kind in kinds:
                roles[level] = {str(resource): [f"only_{rule}" for rule in kinds[kind]]}
        if roles:
            self.studio.join(self.project, user, **roles)


def new_scene(studio: Studio) -> Scene:
    project, number = studio.project(), next(_numbers)
    scene = Scene(studio, project, _FIRST_APPLICATION_ID + number, f"{number:024x}")
    application = {"application_id": scene.app, "name": "Scene", "project_id": project}
    studio.server.apply(
        {
            "applications": [application | {"service_meta": {"tags": ["one"]}}],
            "roles": {str(scene.app): [{"name": "guest"}]},
            "groups": [{"group_id": scene.group, "project_id": project, "title": "Scene"}],
        }
    )
    return scene


@pytest.fixture(scope="module", autouse=True)
def roles_of_one_rule(studio: Studio) -> None:
    """A generic role for each generic rule, so that each rule can be given alone."""
    roles = {
        rule: {"name": f"only_{rule}", "meta": {"private_data": {section: {rule: {"value": True}}}}}
        for section, rules in GENERIC_RULES.items()
        for rule in rules
    }
    studio.server.apply({"roles": {"1": list(roles.values())}})


@pytest.fixture(scope="module")
def shared(studio: Studio) -> Scene:
    return new_scene(studio)


@pytest.fixture(scope="module")
def elsewhere(studio: Studio) -> Scene:
    """Another project."""
    return new_scene(studio)


@dataclass(frozen=True)
class Callers:
    """Users with exactly the given rights. Operations share them, since creating one takes longer than most calls."""

    studio: Studio
    users: dict[tuple[int, tuple[str, ...]], ApiUser] = field(default_factory=dict)

    def with_rights(self, scene: Scene, rights: tuple[str, ...]) -> ApiUser:
        key = (scene.app, tuple(sorted(rights)))
        if key not in self.users:
            self.users[key] = self.studio.user()
            scene.give(self.users[key], *rights)
        return self.users[key]


@pytest.fixture(scope="module")
def callers(studio: Studio) -> Callers:
    return Callers(studio)


EVERY_RIGHT = (
    *(f"root:{rule}" for rule in ROOT_RULES),
    *(f"secret:{rule}" for rule in SECRET),
    *(f"project:{rule}" for rules in GENERIC_RULES.values() for rule in rules),
)


@dataclass(frozen=True)
class Row:
    operation: str
    allowed: tuple[tuple[str, ...], ...]  # each of these rights suffices
    call: Callable[[Scene, ApiUser], ApiResponse]
    useless: tuple[str, ...] = EVERY_RIGHT  # all of these rights without the sufficient ones do not suffice
    fresh: bool = False  # the request cannot be repeated
    refused: int = 403


def application(action: str, **data: Any) -> Callable[[Scene, ApiUser], ApiResponse]:
    def call(scene: Scene, user: ApiUser) -> ApiResponse:
        return user.call("application", action=action, data={"application_id": scene.app, **data})

    return call


def create(scene: Scene, user: ApiUser, project: str | None = None) -> ApiResponse:
    data = {"name": f"Made {next(_numbers)}", **({"project_id": project} if project else {})}
    return user.call("application", action="save", data=data)


def project(action: str, path: str = "project", **data: Any) -> Callable[[Scene, ApiUser], ApiResponse]:
    return lambda scene, user: user.call(path, action=action, data={"id": scene.project, **data})


def at_application(path: str, action: str, **data: Any) -> Callable[[Scene, ApiUser], ApiResponse]:
    return lambda scene, user: user.call(path, action=action, application_id=scene.app, data=data)


def on_group(path: str, data: dict[str, Any], **fields: Any) -> Callable[[Scene, ApiUser], ApiResponse]:
    return lambda scene, user: user.call(path, group_id=scene.group, data=data, **fields)


def use_key(scene: Scene, user: ApiUser) -> ApiResponse:
    created = user.call("accessKey", action="save", application_id=scene.app, data={"comment": "mine"})
    if created.status != 200:
        listed = user.call("accessKey", action="get", application_id=scene.app)
        assert listed.status == created.status
        return created
    assert len(user.call("accessKey", action="get", application_id=scene.app).data) == 1
    return user.call("accessKey", action="delete", application_id=scene.app, data={"id": created.data["id"]})


MANAGE_APPS = ("project:can_manage_applications",)
BAN = ("app:can_ban_users",)
ROWS = (
    Row(
        "application get",
        (MANAGE_APPS, ("secret:canRead",), ("app:can_view_app",), ("app:can_manage_app_api_keys",), BAN),
        application("get"),
        # Any role in the applications section suffices to view, also a role over the whole project.
        useless=tuple(
            right for right in EVERY_RIGHT if not right.endswith(("can_view_app", "app_api_keys", "ban_users"))
        ),
    ),
    Row("application save", (MANAGE_APPS, ("secret:canSave",)), application("save", description="new")),
    Row("application create in a project", (MANAGE_APPS,), lambda s, p: create(s, p, s.project)),
    Row("application create outside a project", (("root:can_create_app",),), create),
    Row(
        "application delete",
        (("root:can_remove_apps",), MANAGE_APPS),
        application("delete"),
        fresh=True,
    ),
    Row(
        "application service metadata update",
        (("root:can_publish_services",),),
        application("save", service_meta={"env": "dev"}),
    ),
    Row(
        "application tags",
        (("root:can_publish_services",),),
        lambda s, p: p.call("application/tags", application_id=s.app, data={"tags": ["one"]}),
    ),
    Row(
        "application keys in service metadata",
        (("root:can_publish_services", *MANAGE_APPS), ("root:can_publish_services", "secret:canSave")),
        application("save", service_meta={"public_key": "none"}),
        useless=("root:can_publish_services", "secret:canRead", "project:can_manage_project"),
    ),
    Row("publish", (("root:can_create_projects",),), lambda s, p: p.call("publish", project=f"Pub {next(_numbers)}")),
    Row("project get", (("project:can_view_project",),), project("get")),
    Row("project save", (("project:can_manage_project",),), project("save", description="new")),
    Row("project delete", (("project:can_remove_project",),), project("delete"), fresh=True),
    Row("membership get", (("project:can_view_project",),), project("get", "project/membership")),
    Row("membership save", (("project:can_manage_project",),), project("save", "project/membership")),
    Row(
        "group save",
        (("project:can_manage_groups",),),
        lambda s, p: p.call("group", action="save", data={"project_id": s.project, "title": "New"}),
    ),
    Row("group save again", (("project:can_manage_groups",),), on_group("group", {"title": "Newer"}, action="save")),
    Row("group delete", (("project:can_manage_groups",),), on_group("group", {}, action="delete"), fresh=True),
    Row("group tags", (("project:can_manage_groups",),), on_group("group/tags", {"tags": ["one"]})),
    Row(
        "group access save",
        (("project:can_manage_group",), ("group:can_manage_group",)),
        on_group("group/access", {"users": ["5"]}),
    ),
    Row(
        "access key",
        (("secret:canCreateJwt",), ("project:can_manage_app_api_keys",), ("app:can_manage_app_api_keys",)),
        use_key,
    ),
    Row("role read", (("secret:canReadSchema",),), at_application("roles", "get", name="guest")),
    Row("role list", (("secret:canReadSchema",), ("secret:canSeeRoleList",)), at_application("roles", "get")),
    Row("role save", (("secret:canModifySchema",), MANAGE_APPS), at_application("roles", "save", name="other")),
    Row(
        "role delete",
        (("secret:canModifySchema",), MANAGE_APPS),
        at_application("roles", "delete", name="guest"),
        fresh=True,
    ),
    Row("schema read", (("secret:canReadSchema",),), at_application("meta/schema", "get")),
    Row("schema modify", (("secret:canModifySchema",),), at_application("meta/schema", "save", public_data={})),
    Row(
        "audit of a project",
        (("project:can_manage_project",),),
        lambda s, p: p.call("audit", data={"project_id": s.project}),
    ),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.operation)
def test_operation_is_allowed_with_each_sufficient_right(
    studio: Studio, callers: Callers, shared: Scene, row: Row
) -> None:
    """The role root suffices too: nearly all tests of this folder use it."""
    for rights in row.allowed:
        scene = new_scene(studio) if row.fresh else shared
        response = row.call(scene, callers.with_rights(scene, rights))
        assert (response.status, response.body["status"]) == (200, "OK"), (rights, response.body)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.operation)
def test_operation_is_forbidden_without_a_sufficient_right(
    callers: Callers, shared: Scene, elsewhere: Scene, row: Row
) -> None:
    """Callers with all other rights, and with every right in another project, are refused.

    Callers without rights are those of test_forbidden_texts.py.
    """
    enough = {rights[0] for rights in row.allowed if len(rights) == 1}
    for scene, rights in (
        (shared, tuple(right for right in row.useless if right not in enough)),
        (elsewhere, tuple(right for right in EVERY_RIGHT if not right.startswith("root:"))),
    ):
        response = row.call(shared, callers.with_rights(scene, rights))
        assert (response.status, response.body["status"]) == (403, "ERROR"), rights
        assert response.body["error"].endswith(" is required"), rights


def test_group_get_returns_only_groups_that_the_caller_manages(studio: Studio) -> None:
    scene = new_scene(studio)
    other = studio.group(scene.project)
    none, single, all_groups = studio.users(3)
    scene.give(none, "project:can_manage_groups", "project:can_manage_project")
    scene.give(single, "group:can_manage_group")
    scene.give(all_groups, "project:can_manage_group")

    def seen(user: ApiUser) -> list[str]:
        data = user.call("group", action="get", data={"project_id": scene.project}).data
        assert data["max_users_cnt"] == 100
        return [group["id"] for group in data["groups"]]

    assert seen(none) == []
    assert seen(single) == [scene.group]
    assert sorted(seen(all_groups)) == sorted((scene.group, other))


def test_any_role_in_the_applications_section_suffices_to_view(studio: Studio) -> None:
    scene = new_scene(studio)
    user = studio.user()
    studio.join(scene.project, user, applications={str(scene.app): ["viewer"]})
    assert application("get")(scene, user).status == 200
    assert application("save", name="x")(scene, user).status == 403


def test_creator_of_an_application_has_no_rights_there(studio: Studio) -> None:
    user = studio.user()
    studio.give_rules(user, "can_create_app")
    created = user.call("application", action="save", data={"name": "Mine"}).data["application_id"]
    assert user.call("application", action="get", data={"application_id": created}).status == 403
    assert user.call("application", action="save", data={"application_id": created, "name": "x"}).status == 403


def test_author_and_target_of_a_published_project_have_every_right_there(studio: Studio) -> None:
    author, target = studio.user(), studio.user(second_factor=True)
    studio.give_rules(author, "can_create_projects")
    created = author.call("publish", project=f"Both {next(_numbers)}", user=target.user_id).data["id"]
    for user in (author, target):
        rules = {rule for rule in studio.rules_of(user, 1) if rule.startswith(f"{created}/")}
        assert rules == {f"{created}/project.{rule}" for rule in GENERIC_RULES["project"]}


def test_rule_in_public_data_does_not_count_as_root_rule(studio: Studio) -> None:
    user = studio.user()
    studio.save_data(user, 1, public_data={"can_create_projects": {"value": True}})
    assert studio.rules_of(user, 1) == []  # the schema declares it as private
    assert studio.rules_of(user, 1, "list") == ["public_data.can_create_projects"]
    assert user.call("publish", project=f"Public {next(_numbers)}").status == 403


def test_root_has_every_right_and_only_root_gives_the_role_root(studio: Studio) -> None:
    helper = studio.user()
    studio.give_secret(helper, 1, "canModifySchema", roles={"canWrite": "all"})
    mine = {"user_id": helper.user_id, "roles": ["root"]}
    assert helper.call("meta/data", action="save", application_id=1, data=mine).status == 403
    theirs = {"user_id": studio.root.user_id, "roles": []}
    assert helper.call("meta/data", action="save", application_id=1, data=theirs).status == 403
    for_all = {"name": "root", "default": True}
    assert helper.call("roles", action="save", application_id=1, data=for_all).status == 403
    assert helper.call("meta/schema", action="save", application_id=1, data={"roles": {"root": for_all}}).status == 403
    plain = {"user_id": helper.user_id, "roles": ["viewer"]}
    assert helper.call("meta/data", action="save", application_id=1, data=plain).status == 200
