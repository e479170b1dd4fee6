"""Roles of a realm.

All roles become roles of one application: those of the realm by their name, those of clients as ``client_role``. A user
of Keycloak has the roles that a role is composed of and those of the groups above, too; here they are assigned, so the
mapping of a name has all of them.
"""

import re
from collections.abc import Iterator
from typing import Any

from sso.cli.keycloak_realm.built_in import UNUSED_ROLES, BuiltIn
from sso.cli.keycloak_realm.notes import Notes
from sso.cli.records.types import Fields
from sso.cli.user_files.model import JsonObject, names_of, objects_of, text_of
from sso.perm.engine.reserved_names import is_segment

MAX_DESCRIPTION = 1024


class RealmRoles:
    """Roles by their names in the mapping: ``moderator``, or ``forum/editor`` for that of a client."""

    def __init__(self, realm: JsonObject, built_in: BuiltIn, application_id: int, notes: Notes) -> None:
        self._application_id = application_id
        self._built_in = built_in
        self._roles = dict(_listed(realm.get("roles")))
        self._names = self._new_names(notes)
        self._note_defaults(notes)

    def records(self) -> list[Fields]:
        return [
            {"name": new, **({"description": text} if (text := _description(self._roles[name])) else {})}
            for name, new in self._names.items()
        ]

    def mapping(self) -> dict[str, list[Fields]]:
        """Roles that administer Keycloak stay unknown to the mapping, so that the import of users names them."""
        roles = {name: self.targets([name]) for name in self._roles if not self._built_in.administers(name)}
        return {**{name: [] for name in UNUSED_ROLES}, **roles}

    def targets(self, names: list[str]) -> list[Fields]:
        """Returns the roles here that users with these roles of the realm get."""
        return [{"application_id": self._application_id, "role": role} for role in self._new(names)]

    def _new(self, names: list[str]) -> list[str]:
        return [self._names[name] for name in self._with_composites(names) if name in self._names]

    def _new_names(self, notes: Notes) -> dict[str, str]:
        """Returns the names here, by those in the realm. A name that is taken or reserved is left out."""
        names: dict[str, str] = {}
        for name, role in self._roles.items():
            if self._built_in.is_role(name):
                continue
            new = re.sub(r"[^A-Za-z0-9_-]", "_", name)
            note = notes.about(f"role {name[:80]}")
            if not is_segment(new):
                note("left out: a name has 1 to 64 letters, digits, _ and -")
            elif new == "default":
                note("left out: everybody would have a role of this name here")
            elif new in names.values() or (new != name and new in self._roles):
                note(f"left out: another role is {new} here")
            else:
                names[name] = new
                if role.get("attributes"):
                    note("its attributes are left out")
        return names

    def _note_defaults(self, notes: Notes) -> None:
        """Users who are imported have the default roles of the realm; new users would not get them."""
        for name in filter(self._built_in.is_default, self._roles):
            if roles := self._new([name]):
                notes.add(f"role {name[:80]}", f"users who register here do not get {', '.join(roles)}")

    def _with_composites(self, names: list[str]) -> list[str]:
        """Returns the roles and those that they are composed of, each once. Compositions may have circles."""
        found: dict[str, None] = {}
        waiting = list(reversed(names))
        while waiting:
            name = waiting.pop()
            if name not in found:
                found[name] = None
                waiting += reversed(role_names(self._roles.get(name, {}).get("composites"), "realm", "client"))
        return list(found)


def role_names(value: Any, realm: str, client: str) -> list[str]:
    """Returns the names in the lists of roles that users, groups and composite roles have."""
    if not isinstance(value, dict):
        return []
    clients = value.get(client)
    pairs = clients.items() if isinstance(clients, dict) else ()
    return [*names_of(value, realm), *(f"{name}/{role}" for name, roles in pairs for role in names_of({"": roles}, ""))]


def _listed(roles: Any) -> Iterator[tuple[str, JsonObject]]:
    if not isinstance(roles, dict):
        return
    for role in objects_of(roles, "realm"):
        yield text_of(role, "name"), role
    for client, listed in (roles.get("client") or {}).items():
        for role in listed:
            yield f"{client}/{text_of(role, 'name')}", role


def _description(role: JsonObject) -> str:
    text = text_of(role, "description")
    return "" if text.startswith("${") else text[:MAX_DESCRIPTION]
