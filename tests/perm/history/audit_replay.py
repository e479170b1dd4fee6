"""Replays entries of the audit trail into plain dictionaries, for the reference evaluator.

It knows nothing of the service but the format of the entries.
"""

import copy
from collections.abc import Mapping
from typing import Any

NO_RECORD: dict[str, Any] = {"login": {}, "public_data": {}, "private_data": {}, "secret_data": {}, "roles": []}
IRRELEVANT = ("access_key.", "application.key.", "application.move", "client.", "user.end", "user.delete")


class AuditReplay:
    """The state of the permission model after the entries that were applied."""

    def __init__(self, central: Mapping[str, Any]) -> None:
        """``central`` is the schema of the central application with its roles, which were there before the entries."""
        self.users: dict[str, dict[str, Any]] = {}
        self.applications: dict[int, dict[str, Any]] = {1: {"project_id": None, "removed": False, "is_service": False}}
        self.schemas: dict[int, dict[str, Any]] = {1: dict(central)}
        self.roles: dict[int, dict[str, Any]] = {1: dict(central["roles"])}
        self.records: dict[tuple[str, int], dict[str, Any]] = {}
        self.projects: dict[str, dict[str, Any]] = {}
        self.groups: dict[str, dict[str, Any]] = {}
        self.members: dict[str, dict[str, dict[str, Any]]] = {}  # roles by project and user

    def copy(self) -> "AuditReplay":
        return copy.deepcopy(self)

    def apply(self, entry: Mapping[str, Any]) -> None:
        operation, target, before, after = (entry[name] for name in ("operation", "target", "before", "after"))
        if operation.startswith(IRRELEVANT):
            return
        kind, _, action = operation.partition(".")
        scope = {"entry": entry, "target": target, "before": before, "after": after}
        handler = getattr(self, f"_{kind}_cascade" if action == "cascade" else f"_{kind}", None)
        assert handler is not None, f"the replay does not know {operation}"
        handler(**scope)

    def _user(self, target: str, after: Any, **_others: Any) -> None:
        user = self.users.setdefault(target, {"user_id": target, "tags": [], "purchases": []})
        user.update({name: after[name] for name in ("login", "tags", "purchases") if name in after})

    def _application(self, target: str, after: Any, **_others: Any) -> None:
        service = after["service_meta"] != {}
        fields = {"name": after["name"], "project_id": after.get("project_id"), "removed": after["removed"]}
        self.applications[int(target)] = fields | {"is_service": service}
        self.schemas.setdefault(int(target), {})
        self.roles.setdefault(int(target), {})

    def _schema(self, target: str, after: Any, **_others: Any) -> None:
        self.schemas[int(target)] = after

    def _role(self, target: str, after: Any, **_others: Any) -> None:
        application_id, _, name = target.partition("/")
        if after is None:
            del self.roles[int(application_id)][name]
        else:
            self.roles[int(application_id)][name] = after

    def _permissions(self, target: str, after: Any, **_others: Any) -> None:
        application_id, _, user_id = target.partition("/")
        self.records[user_id, int(application_id)] = after

    def _permissions_cascade(self, target: str, before: Any, **_others: Any) -> None:
        application_id, _, name = target.partition("/")
        for removed in before["roles"]:
            record = self.records[removed["user_id"], int(application_id)]
            record["roles"] = [role for role in record["roles"] if role["name"] != name]

    def _project(self, target: str, after: Any, **_others: Any) -> None:
        lists = self.projects.get(target, {"allow": [], "disallow": []})
        self.projects[target] = lists | after
        for admin in after.get("admins", ()):
            self.members.setdefault(target, {})[admin] = {"project": ["admin"]}

    def _project_cascade(self, target: str, after: Any, **_others: Any) -> None:
        self.projects[target]["settings"]["services"] = after["services"]

    def _membership(self, target: str, after: Any, **_others: Any) -> None:
        self.members[target] = {member["user_id"]: member["roles"] for member in after["users"]}
        self.projects[target] |= {"allow": after["allow"], "disallow": after["disallow"]}

    def _membership_cascade(self, target: str, before: Any, **_others: Any) -> None:
        for removed in before["users"]:
            roles = self.members[target][removed["user_id"]]
            if removed["level"] == "project":
                roles["project"] = self._without(roles["project"], removed["role"])
            else:
                at_level = roles[removed["level"]]
                at_level[removed["resource"]] = self._without(at_level[removed["resource"]], removed["role"])
            if not any(roles["project"] if level == "project" else any(roles[level].values()) for level in roles):
                del self.members[target][removed["user_id"]]

    def _without(self, roles: list[Any], name: str) -> list[Any]:
        return [role for role in roles if (role if isinstance(role, str) else role["name"]) != name]

    def _group(self, target: str, after: Any, **_others: Any) -> None:
        if after is None:
            del self.groups[target]
        else:
            self.groups[target] = after

    # Scenarios

    def exists(self, user_id: str, application_id: int) -> bool:
        return user_id in self.users and application_id in self.applications

    def is_removed(self, application_id: int) -> bool:
        application = self.applications[application_id]
        project = self.projects.get(application["project_id"] or "")
        return bool(application["removed"] or (project and project["removed"]))

    def scenario(self, user_id: str, application_id: int, now: int, ip: str | None) -> dict[str, Any]:
        """The parts that the reference evaluator reads."""
        application = self.applications[application_id]
        home = application["project_id"]
        projects = [project_id for project_id, members in self.members.items() if user_id in members]
        return {
            "application_id": application_id,
            "schema": self.schemas[application_id],
            "roles": list(self.roles[application_id].values()),
            "user": self.users[user_id] | {"ip": ip},
            "own": self.records.get((user_id, application_id), NO_RECORD),
            "removed": application["removed"],
            "home": self._project_of(home, user_id) if home else None,
            "projects": [self._project_of(project_id, user_id) for project_id in projects]
            if application_id == 1
            else [],
            "now": now,
        }

    def _project_of(self, project_id: str, user_id: str) -> dict[str, Any]:
        return self.projects[project_id] | {
            "applications": [
                {"id": application_id, "removed": application["removed"], "is_service": application["is_service"]}
                for application_id, application in self.applications.items()
                if application["project_id"] == project_id
            ],
            "groups": [group for group in self.groups.values() if group["project_id"] == project_id],
            "member": self.members.get(project_id, {}).get(user_id, {}),
        }
