"""Random writes to the permission model through its endpoints, with few names, so that they often meet.

Some of them are refused: a role that does not exist, a project without administrator, a group that is still listed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.perm.history.audit_replay import AuditReplay
from tests.perm.random_scenarios import ScenarioGenerator

NAMES = ("a", "b-c", "chat", "can_create_projects")
ROLES = ("r1", "r2", "default")
GENERIC_ROLES = ("g1", "g2", "viewer")
TAGS = ("t1", "t2")
DOMAINS = ("example.com", "Other.org", "straße.de")
HOUR = 3600


@dataclass(frozen=True)
class PermissionWrite:
    path: str  # of an endpoint, or of the management API if it begins with a slash
    body: dict[str, Any]

    @property
    def is_endpoint(self) -> bool:
        return not self.path.startswith("/")


@dataclass
class World:
    """What the writes are about."""

    users: list[str]
    applications: list[int]
    projects: list[str]
    keeper: str  # the administrator of the projects
    state: AuditReplay  # now


class WriteGenerator(ScenarioGenerator):
    def __init__(self, seed: int, world: World, now: int) -> None:
        super().__init__(seed, size=7)
        self.world = world
        self.now = now
        self.next_writes: list[PermissionWrite] = []

    def write(self, *, late: bool) -> PermissionWrite:
        """A write. Only a ``late`` one may remove a project or an application: most writes after it are refused."""
        if self.next_writes:
            return self.next_writes.pop()
        kinds: tuple[tuple[Callable[[], PermissionWrite], int], ...] = (
            (self.record, 12),
            (self.application_role, 8),
            (self.generic_role, 4),
            (self.schema, 2),
            (self.membership, 6),
            (self.services, 4),
            (self.group_access, 6),
            (self.new_group, 2),
            (self.group_tags, 1),
            (self.removed_group, 1),
            (self.removed_role, 4),
            (self.account, 4),
            (self.moved_application, 2),
            (self.removed_application, 2 * late),
            (self.removed_project, 2 * late),
        )
        (chosen,) = self.random.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])
        return chosen()

    # Parts with the names of this world

    def asked(self, name: str) -> Any:
        match name:
            case "domain":
                return self.one(DOMAINS)
            case "uid":
                return self.some(tuple(self.world.users), 2)
            case "ip":
                return self.one(("127.0.0.0/8", "10.0.0.0/8"))
            case "everyone":
                return self.sometimes(0.7)
        return self.one(TAGS)

    def rule(self, *, own: bool) -> dict[str, Any]:
        node = super().rule(own=own)
        return node | ({"expired": self.moment()} if "expired" in node else {})

    def tree(self, *, own: bool = False, names: tuple[str, ...] = NAMES, depth: int = 0) -> dict[str, Any]:
        return super().tree(own=own, names=names, depth=depth)

    def data(self, *, own: bool = False) -> dict[str, Any]:
        return super().data(own=own) or {"private_data": self.tree(own=own)}

    def moment(self) -> int:
        """An end that is far from now: a run takes less than an hour."""
        return int(self.one((0, 0, 1, self.now - HOUR, self.now + HOUR, self.now + 2 * HOUR)))

    def known(self, application_id: int) -> tuple[str, ...]:
        """The roles of an application, sometimes with one that may not exist."""
        stored = tuple(self.world.state.roles[application_id])
        names = GENERIC_ROLES if application_id == 1 else ROLES
        return names if self.sometimes(0.1) else tuple(name for name in names if name in stored)

    def assigned(self, names: tuple[str, ...], most: int) -> list[Any]:
        return [
            {"name": name, "expired": self.moment(), "ttl": self.one((0, 0, 30))} if self.sometimes(0.3) else name
            for name in self.some(names, most)
        ]

    def assigned_roles(self) -> tuple[tuple[int, str], ...]:
        """The roles that users of this world have, by application; without the built-in ones."""
        return tuple(
            (application_id, role["name"])
            for (user_id, application_id), record in self.world.state.records.items()
            for role in record["roles"]
            if user_id in self.world.users and role["name"] in (*ROLES, *GENERIC_ROLES[:2])
        )

    @property
    def application_id(self) -> int:
        """Mostly the first application, so that writes meet."""
        first, second = self.world.applications
        return first if self.sometimes(0.7) else second

    @property
    def project_id(self) -> str:
        return str(self.one(tuple(self.world.projects)))

    def groups_of(self, project_id: str) -> tuple[str, ...]:
        return tuple(group["id"] for group in self.world.state.groups.values() if group["project_id"] == project_id)

    def any_group(self) -> str:
        groups = [group_id for project_id in self.world.projects for group_id in self.groups_of(project_id)]
        return str(self.one(tuple(groups) or ("0" * 24,)))

    # Writes

    def record(self) -> PermissionWrite:
        central = self.sometimes(0.2)
        application_id = 1 if central else self.application_id
        data = {"user_id": self.one(tuple(self.world.users)), **self.data(own=True)}
        if self.sometimes(0.8):
            data["roles"] = self.assigned(self.known(application_id), 3)
        return self.saving("meta/data", data, application_id=application_id)

    def application_role(self) -> PermissionWrite:
        return self.saving("roles", self.role(self.one(ROLES), generic=False), application_id=self.application_id)

    def generic_role(self) -> PermissionWrite:
        data = self.role(self.one(GENERIC_ROLES[:2]), generic=True)
        return self.saving("roles", data, application_id=1)

    def schema(self) -> PermissionWrite:
        return self.saving("meta/schema", self.data(), application_id=self.application_id)

    def removed_role(self) -> PermissionWrite:
        application_id, name = self.one(self.assigned_roles() or ((self.application_id, self.one(ROLES)),))
        if self.sometimes(0.7):  # assignments of the old role must not give the new one
            again = self.role(name, generic=application_id == 1)
            self.next_writes.append(self.saving("roles", again, application_id=application_id))
        body = {"action": "delete", "application_id": application_id, "data": {"name": name}}
        return PermissionWrite("roles", body)

    def membership(self) -> PermissionWrite:
        project_id = self.project_id
        users = [{"user_id": user_id, "roles": self.member(project_id)} for user_id in self.most_users()]
        data: dict[str, Any] = {"id": project_id}
        data["users"] = [*users, {"user_id": self.world.keeper, "roles": {"project": ["admin"]}}]
        for name in ("allow", "disallow"):
            if self.sometimes(0.2):
                data[name] = self.some(self.groups_of(project_id), 1)
        return self.saving("project/membership", data)

    def most_users(self) -> list[str]:
        return [user_id for user_id in self.world.users if self.sometimes(0.7)]

    def member(self, project_id: str) -> dict[str, Any]:
        state = self.world.state.applications
        applications = tuple(str(key) for key in state if state[key]["project_id"] == project_id)
        services = tuple(key for key in applications if state[int(key)]["is_service"])
        levels: dict[str, Any] = {"project": self.assigned(self.known(1), 2)}
        for level, resources in (
            ("applications", applications),
            ("services", services),
            ("groups", self.groups_of(project_id)),
        ):
            levels[level] = {resource: self.assigned(self.known(1), 2) for resource in self.some(resources, 2)}
        return levels

    def services(self) -> PermissionWrite:
        project_id = self.project_id
        state = self.world.state.applications
        groups = self.groups_of(project_id)
        services = {
            str(key): {
                "groups": [self.action(groups, self.known(key)) for _ in range(self.random.randint(0, 4)) if groups]
            }
            for key in state
            if state[key]["project_id"] == project_id
        }
        settings: dict[str, Any] = {"services": services}
        if self.sometimes(0.3):
            settings["allowed_domains"] = self.some(DOMAINS, 2)
        return self.saving("project", {"id": project_id, "settings": settings})

    def action(self, groups: tuple[str, ...], roles: tuple[str, ...]) -> dict[str, Any]:
        action = self.one(("grant", "grant", "revoke"))
        return {"group_id": self.one(groups), "role": self.one(roles or ROLES), "action": action}

    def new_group(self) -> PermissionWrite:
        title = f"Group {self.random.randrange(10**9)}"
        return self.saving("group", {"project_id": self.project_id, "title": title})

    def group_access(self) -> PermissionWrite:
        conditions = [{"title": "c", "condition": self.condition(ip=False)}] if self.sometimes(0.4) else []
        data: dict[str, Any] = {"users": self.some(tuple(self.world.users), 2), "conditions": conditions}
        return PermissionWrite("group/access", {"group_id": self.any_group(), "data": data})

    def group_tags(self) -> PermissionWrite:
        tags = ["project"] if self.sometimes(0.8) else []
        return PermissionWrite("group/tags", {"group_id": self.any_group(), "data": {"tags": tags}})

    def removed_group(self) -> PermissionWrite:
        return PermissionWrite("group", {"action": "delete", "group_id": self.any_group(), "data": {}})

    def account(self) -> PermissionWrite:
        user_id = self.one(tuple(self.world.users))
        fields: dict[str, Any] = {"tags": self.some(TAGS, 2), "purchases": self.some(TAGS, 2)}
        if self.sometimes(0.5):
            fields["login"] = f"h{user_id}@{self.one(('example.com', 'other.org', 'straße.de'))}"
        return PermissionWrite(f"/users/{user_id}", fields)

    def moved_application(self) -> PermissionWrite:
        data: dict[str, Any] = {"application_id": self.application_id}
        if self.sometimes(0.7):
            data["project_id"] = self.one((None, *self.world.projects))
        if self.sometimes(0.3):
            data["service_meta"] = {"env": "dev"}
        return self.saving("application", data)

    def removed_application(self) -> PermissionWrite:
        return PermissionWrite("application", {"action": "delete", "data": {"application_id": self.application_id}})

    def removed_project(self) -> PermissionWrite:
        return PermissionWrite("project", {"action": "delete", "data": {"id": self.project_id}})

    def saving(self, path: str, data: dict[str, Any], **fields: Any) -> PermissionWrite:
        return PermissionWrite(path, {"action": "save", "data": data, **fields})
