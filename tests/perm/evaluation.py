"""Evaluate a scenario written as plain JSON: an application, one user, projects.

The JSON passes through `sso.perm.input` and `sso.perm.engine.decode`, as in production. The reference evaluator reads
the same JSON.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sso.core.net import parse_address
from sso.perm.engine import render
from sso.perm.engine.compiled_application import CompiledApplication, compile_application
from sso.perm.engine.decode import decode_group, decode_own_record, decode_project
from sso.perm.engine.effective_permissions import EffectivePermissions, compute_permissions
from sso.perm.engine.facts import PermissionFacts, ProjectApplication, ProjectFacts
from sso.perm.engine.records import RoleRecord, Schema
from sso.perm.engine.render import Options, as_tree
from sso.perm.engine.user_facts import UserFacts
from sso.perm.input.groups import read_group_changes
from sso.perm.input.project import read_project_settings
from sso.perm.input.references import encode_assignments
from sso.perm.input.roles import read_assignments, read_role
from sso.perm.input.schema import read_own_data, read_schema

NOW = 1_700_000_000
USER: dict[str, Any] = {"user_id": "1001", "login": "ann@example.com", "tags": [], "purchases": [], "ip": "10.0.0.1"}
GROUP_A, GROUP_B, GROUP_C = "a" * 24, "b" * 24, "c" * 24


@dataclass(frozen=True)
class Evaluation:
    application: CompiledApplication
    facts: PermissionFacts
    effective: EffectivePermissions
    now: int

    def full(self, **options: Any) -> list[str]:
        return render.as_list(self.effective, Options(**options))

    def short(self, **options: Any) -> list[str]:
        return render.as_list_short(self.effective, Options(**options))

    def roles(self, **options: Any) -> list[str]:
        return render.as_roles(self.effective, Options(**options))

    def effective_roles(self, **options: Any) -> list[str]:
        return render.effective_roles(self.effective, Options(**options))

    def expired(self, **options: Any) -> int:
        return render.earliest_role_end(self.effective, Options(**options))

    def tree(self) -> dict[str, Any]:
        return as_tree(self.application.schema, self.facts.own)


def evaluate(**parts: Any) -> Evaluation:
    """``parts`` may have application_id, schema, roles, user, own, removed, home, projects and now."""
    return evaluate_with(application_of(parts), parts)


def evaluate_with(application: CompiledApplication, parts: Mapping[str, Any]) -> Evaluation:
    facts = facts_of(parts)
    now = parts.get("now", NOW)
    return Evaluation(application, facts, compute_permissions(application, facts, now), now)


def application_of(parts: Mapping[str, Any]) -> CompiledApplication:
    return compile_application(
        parts.get("application_id", 10),
        parts.get("version", 1),
        schema(parts.get("schema", {})),
        [role(record) for record in parts.get("roles", ())],
    )


def schema(data: dict[str, Any]) -> Schema:
    return Schema(**read_schema(data)[0])


def role(data: dict[str, Any]) -> RoleRecord:
    return RoleRecord(**read_role(data)[0])


def facts_of(parts: Mapping[str, Any]) -> PermissionFacts:
    own = parts.get("own", {})
    record = read_own_data(own)[0] | {"roles": encode_assignments(read_assignments(own.get("roles", []))[0])}
    home = parts.get("home")
    return PermissionFacts(
        user(parts.get("user", {})),
        decode_own_record(record),
        parts.get("removed", False),
        project(home) if home else None,
        tuple(project(item) for item in parts.get("projects", ())),
    )


def user(data: dict[str, Any]) -> UserFacts:
    data = USER | data
    address = parse_address(data["ip"]) if data["ip"] else None
    return UserFacts.from_login(data["user_id"], data["login"], tuple(data["tags"]), tuple(data["purchases"]), address)


def project(data: dict[str, Any]) -> ProjectFacts:
    applications = [ProjectApplication(**item) for item in data.get("applications", ())]
    stored_record = data | {"settings": read_project_settings(data.get("settings", {}))[0]}
    return decode_project(stored_record, applications, map(group, data.get("groups", ())), data.get("member"))


def group(data: dict[str, Any]) -> Any:
    conditions = read_group_changes({"conditions": data.get("conditions", [])})[0]["conditions"]
    return decode_group(data["id"], data.get("users", ()), conditions, data.get("tags", ()), data.get("title", ""))


def name(item: Any) -> str:
    return item if isinstance(item, str) else item["name"]


def rule(path: str, value: Any = True, **members: Any) -> dict[str, Any]:
    """``chat.mute`` as a tree of one rule."""
    node: dict[str, Any] = {"value": value, **members}
    for part in reversed(path.split(".")):
        node = {part: node}
    return node


def role_giving(role_name: str, path: str = "chat.mute", value: Any = True, **fields: Any) -> dict[str, Any]:
    """A role that gives one private rule."""
    node_members = {"params": fields.pop("rule_params")} if "rule_params" in fields else {}
    return {"name": role_name, "meta": {"private_data": rule(path, value, **node_members)}, **fields}
