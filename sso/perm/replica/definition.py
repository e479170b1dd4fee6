"""The application of a replica: its compiled roles, and its project without users."""

from typing import Any

import orjson
from msgspec import Struct

from sso.perm.engine.compiled_application import CompiledApplication, compile_application
from sso.perm.engine.conditions import named_users
from sso.perm.engine.decode import decode_group, decode_project
from sso.perm.engine.facts import ProjectApplication, ProjectFacts
from sso.perm.engine.records import RoleRecord
from sso.perm.stores.builtin_roles import complete_schema

_ROLE_FIELDS = ("name", "protected", "default", "condition", "params", "meta")


class Definition(Struct, frozen=True):
    """``attributes`` are the attributes of users that its conditions name; rows of users have no others."""

    version: str
    stored: dict[str, Any]
    attributes: dict[str, Any]
    application: CompiledApplication
    project: ProjectFacts | None
    named_users: frozenset[str]  # by the id of a user in a condition

    @classmethod
    def decode(cls, version: str, stored: dict[str, Any], attributes: dict[str, Any]) -> "Definition":
        application = _application(stored)
        project = _project(stored)
        conditions = [role.condition for role in application.roles.values() if role.condition is not None]
        conditions += [item.condition for group in (project.groups if project else ()) for item in group.conditions]
        named = frozenset[str]().union(*map(named_users, conditions))
        return cls(version, stored, attributes, application, project, named)

    @classmethod
    def from_json(cls, text: bytes) -> "Definition":
        return cls.decode(*orjson.loads(text))

    def json(self) -> bytes:
        return orjson.dumps([self.version, self.stored, self.attributes])

    def covers(self, other: "Definition") -> bool:
        """Returns whether rows that were read for this definition are complete for the other one, too."""
        if self.attributes["project_id"] != other.attributes["project_id"]:
            return False
        return all(set(other.attributes[name]) <= set(values) for name, values in self._values())

    def _values(self) -> list[tuple[str, list[str]]]:
        return [(name, self.attributes[name]) for name in ("domains", "tags", "purchases")]


def right_tree(node: object) -> dict[str, Any]:
    """Returns ``secret_data`` with the only right that a replica needs."""
    return {"meta": {"public": {"canWrite": node}}} if isinstance(node, dict) else {}


def _application(stored: dict[str, Any]) -> CompiledApplication:
    schema = stored["schema"]
    sections = {
        "public_data": schema["public_data"],
        "private_data": schema["private_data"],
        "secret_data": right_tree(schema["public_can_write"]),
        "login": {},
    }
    roles = [
        RoleRecord(**{name: role[name] for name in _ROLE_FIELDS} | {"meta": _without_none(role["meta"])})
        for role in stored["roles"]
    ]
    return compile_application(stored["application_id"], stored["revision"], complete_schema(sections), roles)


def _without_none(meta: dict[str, Any]) -> dict[str, Any]:
    return {section: tree for section, tree in meta.items() if tree is not None}


def _project(stored: dict[str, Any]) -> ProjectFacts | None:
    project = stored["project"]
    if project is None:
        return None
    own = ProjectApplication(stored["application_id"], stored["name"], stored["removed"])
    groups = [
        decode_group(group_id, (), conditions, tags, title) for group_id, title, conditions, tags in project["groups"]
    ]
    return decode_project(project, [own], groups)
