"""Roles and groups of a realm.

All roles become roles of one application: those of the realm by their name, those of clients as ``client_role``. A user
of Keycloak has the roles that a role is composed of and those of the groups above, too; here they are assigned, so the
mapping of a name has all of them.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from sso.cli.keycloak_realm.clients import BUILT_IN
from sso.cli.records.types import Fields
from sso.cli.user_files.model import JsonObject, names_of, objects_of, text_of
from sso.perm.engine.reserved_names import is_segment

MAX_TAG = 64
_UNUSED = ("offline_access", "uma_authorization")  # what they allow, every user may do here
_HARMLESS_CLIENTS = ("account", "account-console", "broker")
_DEFAULT_ROLES = re.compile(r"default-roles-.*", re.DOTALL)
Note = Callable[[str], None]


class RealmRoles:
    """Roles by their names in the mapping: ``moderator``, or ``forum/editor`` for that of a client."""

    def __init__(self, realm: JsonObject, application_id: int, note: Note) -> None:
        self._application_id = application_id
        self._note = note
        self._roles = dict(_listed(realm.get("roles")))
        self._groups = objects_of(realm, "groups")
        self._names = self._new_names()

    def records(self) -> list[Fields]:
        return [
            {"name": new, **({"description": text} if (text := _description(self._roles[name])) else {})}
            for name, new in self._names.items()
        ]

    def mapping(self) -> Fields:
        roles = {name: self._targets([name]) for name in self._roles if not _is_of_administrators(name)}
        groups = {path: [{"tag": tag}, *self._targets(names)] for path, tag, names in self._all_groups()}
        return {"roles": {**{name: [] for name in _UNUSED}, **roles}, "groups": groups}

    def _new_names(self) -> dict[str, str]:
        """Returns the names here, by those in the realm. A name that is taken or reserved is left out."""
        names: dict[str, str] = {}
        for name in self._roles:
            if name in _UNUSED or _DEFAULT_ROLES.fullmatch(name) or name.partition("/")[0] in BUILT_IN:
                continue
            new = re.sub(r"[^A-Za-z0-9_-]", "_", name)
            if not is_segment(new):
                self._note(f"role {name[:80]!r} is left out: a name has 1 to 64 letters, digits, _ and -")
            elif new == "default":
                self._note(f"role {name!r} is left out: everybody would have a role of this name here")
            elif new in names.values():
                self._note(f"role {name!r} is left out: another role has become {new}")
            else:
                names[name] = new
        return names

    def _targets(self, names: list[str]) -> list[Fields]:
        roles = [self._names[name] for name in self._with_composites(names) if name in self._names]
        return [{"application_id": self._application_id, "role": role} for role in roles]

    def _with_composites(self, names: list[str]) -> list[str]:
        """Returns the roles and those that they are composed of, each once. Compositions may have circles."""
        found: dict[str, None] = {}
        waiting = list(reversed(names))
        while waiting:
            name = waiting.pop()
            if name not in found:
                found[name] = None
                waiting += reversed(_names_in(self._roles.get(name, {}).get("composites"), "realm", "client"))
        return list(found)

    def _all_groups(self) -> Iterator[tuple[str, str, list[str]]]:
        """Yields the path, the tag and the roles of each group; a group has those of the groups above it."""
        waiting: list[tuple[JsonObject, str, list[str]]] = [(group, "", []) for group in reversed(self._groups)]
        while waiting:
            group, above, inherited = waiting.pop()
            path = f"{above}/{text_of(group, 'name')}"
            names = [*inherited, *_names_in(group, "realmRoles", "clientRoles")]
            tag = path.removeprefix("/").replace(",", "_")
            if tag and len(tag) <= MAX_TAG and tag.isprintable():
                yield path, tag, names
            else:
                self._note(f"group {path[:80]!r} is left out: a tag has at most {MAX_TAG} characters")
            waiting += [(part, path, names) for part in reversed(objects_of(group, "subGroups"))]


def _listed(roles: Any) -> Iterator[tuple[str, JsonObject]]:
    if not isinstance(roles, dict):
        return
    for role in objects_of(roles, "realm"):
        yield text_of(role, "name"), role
    clients = roles.get("client")
    for client, listed in clients.items() if isinstance(clients, dict) else ():
        for role in objects_of({"": listed}, ""):
            yield f"{client}/{text_of(role, 'name')}", role


def _names_in(value: Any, realm: str, client: str) -> list[str]:
    """Returns the names in the lists of roles that groups and composite roles have."""
    if not isinstance(value, dict):
        return []
    clients = value.get(client)
    pairs = clients.items() if isinstance(clients, dict) else ()
    return [*names_of(value, realm), *(f"{name}/{role}" for name, roles in pairs for role in names_of({"": roles}, ""))]


def _is_of_administrators(name: str) -> bool:
    """Roles of the administration of Keycloak stay unknown to the mapping, so that the import of users names them."""
    client, slash, _ = name.partition("/")
    return bool(slash) and client in BUILT_IN and client not in _HARMLESS_CLIENTS


def _description(role: JsonObject) -> str:
    text = text_of(role, "description")
    return "" if text.startswith("${") else text
