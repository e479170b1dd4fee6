"""A project with one user for each kind of right, for tests of delegation."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.perm.endpoints.conftest import ApiResponse, ApiUser, Studio

_numbers = itertools.count(1)
_FIRST_APPLICATION_ID = 1_500_000_000  # greater than those that shared servers delete or count (kit/shared_server.py)


@dataclass(frozen=True)
class Team:
    """Users that tests share; each test creates its own project for them."""

    studio: Studio
    owner: ApiUser  # admin
    manager: ApiUser
    developer: ApiUser
    leader: ApiUser  # group_admin of the group
    viewer: ApiUser
    stranger: ApiUser  # no role at all

    @classmethod
    def create(cls, studio: Studio) -> "Team":
        return cls(studio, *studio.users(6))

    def project(self) -> "TeamProject":
        number = next(_numbers)
        project = TeamProject(self, f"team_{number}", _FIRST_APPLICATION_ID + number, f"{number:024x}")
        schema = {"private_data": {"rule": {"value": False, "protected": True}, "patrol": {"value": False}}}
        guard = {"name": "guard", "meta": {"private_data": {"patrol": {"value": True}}}}
        chief = {"name": "chief", "meta": {"private_data": {"rule": {"value": True}}}, "protected": True}
        group = {
            "group_id": project.group,
            "project_id": project.id,
            "title": f"Group of {number}",
            "tags": ["project"],
        }
        self.studio.server.apply(
            {
                "projects": [{"title": f"Team {number}", "author": self.studio.root.user_id}],
                "applications": [{"application_id": project.app, "name": f"Game {number}", "project_id": project.id}],
                "schemas": {str(project.app): schema},
                "roles": {str(project.app): [guard, chief]},
                "groups": [group],
                "memberships": [{"id": project.id, "users": project.members()}],
            }
        )
        return project


@dataclass(frozen=True)
class TeamProject:
    team: Team
    id: str
    app: int  # with the roles guard (regular) and chief (protected)
    group: str  # tagged `project`, without users

    def members(self, **changes: list[Any] | None) -> list[dict[str, Any]]:
        """The membership of a new project; ``manager=["admin"]`` replaces roles, ``owner=None`` drops a user."""
        team = self.team
        project_roles: dict[str, list[Any] | None] = {
            "owner": ["admin"], "manager": ["manager"], "developer": ["developer"], "viewer": ["viewer"],
        }  # fmt: skip
        users = [
            member(getattr(team, name), project=roles)
            for name, roles in (project_roles | changes).items()
            if roles is not None
        ]
        return [*users, member(team.leader, groups={self.group: ["group_admin"]})]

    def save_members(self, caller: ApiUser, *users: dict[str, Any]) -> ApiResponse:
        return caller.call("project/membership", action="save", data={"id": self.id, "users": list(users)})

    def save_lists(self, caller: ApiUser, **lists: list[str]) -> ApiResponse:
        return caller.call("project/membership", action="save", data={"id": self.id, **lists})

    def save_settings(self, caller: ApiUser, **settings: Any) -> ApiResponse:
        return caller.call("project", action="save", data={"id": self.id, "settings": settings})

    def save_actions(self, caller: ApiUser, *actions: tuple[str, str]) -> ApiResponse:
        """Grants and revokes of the application's roles for the group: ``("guard", "grant")``."""
        items = [{"group_id": self.group, "role": role, "action": action} for role, action in actions]
        return self.save_settings(caller, services={str(self.app): {"groups": items}})

    def save_access(self, caller: ApiUser, **access: Any) -> ApiResponse:
        return caller.call("group/access", group_id=self.group, data=access)

    def save_role(self, caller: ApiUser, **role: Any) -> ApiResponse:
        return caller.call("roles", action="save", application_id=self.app, data=role)

    def delete_role(self, caller: ApiUser, name: str) -> ApiResponse:
        return caller.call("roles", action="delete", application_id=self.app, data={"name": name})

    def state(self) -> Any:
        """The whole project as root sees it: membership, settings, groups, roles."""
        root = self.team.studio.root
        return [
            root.call("project/membership", action="get", data={"id": self.id}).data,
            root.call("project", action="get", data={"id": self.id}).data,
            root.call("group", action="get", data={"project_id": self.id}).data,
            root.call("roles", action="get", application_id=self.app, data={}).data,
        ]


def member(user: ApiUser, **roles: Any) -> dict[str, Any]:
    return {"user_id": user.user_id, "roles": roles}


def everyone(title: str = "all") -> dict[str, Any]:
    return {"title": title, "condition": {"everyone": True}}


def refused(project: TeamProject, *writes: Callable[[TeamProject], ApiResponse], status: int = 403) -> None:
    """The writes are refused and change nothing."""
    before = project.state()
    for number, write in enumerate(writes):
        response = write(project)
        assert (response.status, response.body["status"]) == (status, "ERROR"), (number, response.body)
    assert project.state() == before
