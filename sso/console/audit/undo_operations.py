"""The operations that undo the entries of the audit trail, by the kind of the entry."""

from collections.abc import Callable, Set
from typing import Any

from sso.accounts.user_record import UserChanges
from sso.admin.permission_bodies import GroupChanges, ProjectChanges, RoleChanges, SchemaChanges
from sso.console.audit.undo import CannotUndo, Undo, Values, changed_fields, restorable
from sso.console.audit.undo_deletions import (
    GROUP,
    PROVIDER_FIELDS,
    ROLE,
    role_variables,
    undo_of_deletion,
    undo_removed_application,
    undo_removed_project,
)
from sso.console.audit.undo_reasons import NOT_STORED, reason_of
from sso.oauth.clients.record import ClientChanges
from sso.perm.engine.reserved_names import SECTIONS
from sso.perm.input.project import ProjectSettings
from sso.perm.stores.user_data import record_json

ROLE_FIELDS = RoleChanges.model_fields.keys() - {"override"}
SCHEMA_FIELDS = SchemaChanges.model_fields.keys() - {"override", "roles"}
GROUP_FIELDS = GroupChanges.model_fields.keys() - {"override"}
PROJECT_FIELDS = ProjectChanges.model_fields.keys() - {"override"}
# Not those that are about secrets and keys.
CLIENT_FIELDS = ClientChanges.model_fields.keys() - {
    "client_id", "client_secret", "client_secret_expires_at", "public", "jwks"
}  # fmt: skip
WEBHOOK_FIELDS = frozenset({"url", "events", "disabled"})
MEMBER = "/projects/<project_id>/members/<user_id>"
PERMISSIONS = "/users/<user_id>/permissions"

Builder = Callable[[str, Values, Values], Undo | None]  # arguments: the target, and the values before and after


def undo_of(entry: dict[str, Any], now: int = 0) -> Undo | CannotUndo:
    """Returns why not if the entry cannot be undone: its values are not known, or there is no such operation.

    ``now``, in Unix seconds, decides whether the secrets of a deleted record are still kept.
    """
    before, after = entry["before"], entry["after"]
    if not restorable(before, after):
        return CannotUndo(NOT_STORED)
    if after is None:
        undo = undo_of_deletion(entry, now)
    else:
        build = (_OF_CREATION if before is None else _OF_CHANGE).get(entry["operation"])
        undo = build(entry["target"], before or {}, after) if build else None
    return undo or CannotUndo(reason_of(entry["operation"]))


def _restore(path: str, variable: str, accepted: Set[str], *, has_dry_run: bool = True) -> Builder:
    """An undo that stores the fields again that the change has changed."""

    def build(target: str, before: Values, after: Values) -> Undo | None:
        changed = changed_fields(before, after)
        body = {name: before.get(name) for name in changed}
        if not changed or not body.keys() <= accepted or (not has_dry_run and None in body.values()):
            return None
        expected = {name: after.get(name) for name in changed}
        return Undo("PATCH", path, {variable: target}, body, expected, has_dry_run=has_dry_run)

    return build


def _undo_user(target: str, before: Values, after: Values) -> Undo | None:
    body = {name: value for name, value in before.items() if name in UserChanges.model_fields and value is not None}
    if not body or body.keys() != before.keys() - {"deletion_due", "deletion_by"}:
        return None
    expected = {name: after.get(name) for name in body}
    return Undo("PATCH", "/users/<user_id>", {"user_id": target}, body, expected)


def _undo_closed_user(target: str, _before: Values, _after: Values) -> Undo:
    return Undo(
        "POST",
        "/users/<user_id>/restore",
        {"user_id": target},
        {},
        {"disabled": True},
        read="/users/<user_id>",
        has_dry_run=False,
        shown={"disabled": False},
        note="The account is kept, with everything in it. What was ended does not come back: the user signs in again.",
    )


def _undo_client(target: str, before: Values, after: Values) -> Undo | None:
    if "application_id" in before and before["application_id"] is None:
        before = {**before, "application_id": 0}
    return _restore("/clients/<client_id>", "client_id", CLIENT_FIELDS, has_dry_run=False)(target, before, after)


def _undo_role(target: str, before: Values, after: Values) -> Undo | None:
    changed = changed_fields(before, after)
    body, expected = ({name: values.get(name) for name in changed} for values in (before, after))
    return Undo("PATCH", ROLE, role_variables(target), body, expected) if body.keys() <= ROLE_FIELDS else None


def _undo_new_role(target: str, _before: Values, after: Values) -> Undo:
    return Undo("DELETE", ROLE, role_variables(target), {}, after)


def _undo_new_group(target: str, _before: Values, after: Values) -> Undo:
    expected = {name: value for name, value in after.items() if name != "id"}
    return Undo("DELETE", GROUP, {"group_id": target}, {}, expected)


def _undo_project(target: str, before: Values, after: Values) -> Undo | None:
    """A save keeps the members of ``settings`` that it does not name, so all of them are named."""
    undo = _restore("/projects/<project_id>", "project_id", PROJECT_FIELDS)(target, before, after)
    if undo is not None and "settings" in undo.body:
        empty = ProjectSettings().model_dump()
        undo.body["settings"] = {**{name: empty[name] for name in empty if name in after["settings"]}} | before[
            "settings"
        ]
    return undo


def _undo_membership(target: str, before: Values, after: Values) -> Undo | None:
    """One member, or the lists. A change of several members at once has no operation that undoes all of them."""
    lists = [name for name in ("allow", "disallow") if before.get(name) != after.get(name)]
    old, new = ({user["user_id"]: user["roles"] for user in values.get("users", ())} for values in (before, after))
    changed = [user_id for user_id in {**old, **new} if old.get(user_id) != new.get(user_id)]
    if lists and not changed:
        body, expected = ({name: values.get(name) for name in lists} for values in (before, after))
        return Undo("PATCH", "/projects/<project_id>", {"project_id": target}, body, expected)
    if lists or len(changed) != 1:
        return None
    variables = {"project_id": target, "user_id": changed[0]}
    if changed[0] not in old:
        return Undo("DELETE", MEMBER, variables, {}, {"roles": new[changed[0]]})
    body = {"roles": old[changed[0]]}
    if changed[0] in new:
        return Undo("PATCH", MEMBER, variables, body, {"roles": new[changed[0]]})
    path, project = "/projects/<project_id>/members", {"project_id": target}
    body["user_id"] = changed[0]
    return Undo("POST", path, project, body, None, read=MEMBER, read_variables=variables)


def _undo_permissions(target: str, before: Values, after: Values) -> Undo | None:
    application_id, _, user_id = target.partition("/")
    parts = ("roles", *SECTIONS)
    old, new = ({name: record_json(values).get(name) for name in parts} for values in (before, after))
    changed = [name for name in parts if old[name] != new[name]]
    if not changed:
        return None
    body: Values = {name: old[name] or ([] if name == "roles" else {}) for name in changed}
    return Undo(
        "PATCH",
        PERMISSIONS,
        {"user_id": user_id},
        {"application_id": int(application_id), **body},
        {name: new[name] for name in changed},
        query={"application_id": application_id},
        member="record",
    )


def _undo_assertions(target: str, before: Values, after: Values) -> Undo:
    path = "/applications/<application_id>/assertions"
    return Undo("PUT", path, {"application_id": target}, dict(before), dict(after))


def _undo_brand(_target: str, before: Values, after: Values) -> Undo:
    body, expected = ({name: values[name] for name in changed_fields(before, after)} for values in (before, after))
    return Undo("PATCH", "/brand", {}, body, expected, has_dry_run=False)


_OF_CHANGE: dict[str, Builder] = {
    "brand.save": _undo_brand,
    "user.save": _undo_user,
    "user.delete": _undo_closed_user,
    "role.save": _undo_role,
    "schema.save": _restore("/schemas/<application_id>", "application_id", SCHEMA_FIELDS),
    "group.save": _restore(GROUP, "group_id", GROUP_FIELDS),
    "group.access": _restore(GROUP, "group_id", GROUP_FIELDS),
    "group.tags": _restore(GROUP, "group_id", GROUP_FIELDS),
    "project.save": _undo_project,
    "project.delete": undo_removed_project,
    "application.delete": undo_removed_application,
    "membership.save": _undo_membership,
    "permissions.save": _undo_permissions,
    "assertions.save": _undo_assertions,
    "client.save": _undo_client,
    "identity_provider.save": _restore(
        "/identity-providers/<provider_id>", "provider_id", PROVIDER_FIELDS, has_dry_run=False
    ),
    "webhook.save": _restore("/webhooks/<webhook_id>", "webhook_id", WEBHOOK_FIELDS, has_dry_run=False),
}
_OF_CREATION: dict[str, Builder] = {"role.save": _undo_new_role, "group.create": _undo_new_group}
