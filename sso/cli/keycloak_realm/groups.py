"""Groups of a realm.

A group becomes a tag of its members. With a project, it also becomes a group of the project: the users with the tag
are its members, and so are those of the groups below, who have its roles in Keycloak, too. The roles of a group are
assigned to its members when the users are imported.
"""

import hashlib
import re
from collections.abc import Iterator

from msgspec import Struct, field

from sso.cli.keycloak_realm.notes import Notes
from sso.cli.keycloak_realm.roles import RealmRoles, role_names
from sso.cli.records.types import Fields
from sso.cli.user_files.model import JsonObject, objects_of, text_of
from sso.perm.input.groups import MAX_CONDITIONS

MAX_TAG, MAX_TITLE = 64, 32


class _Group(Struct):
    path: str
    roles: list[str]  # with those of the groups above
    tag: str = ""
    tags: list[str] = field(default_factory=list)  # of the group and those below


class RealmGroups:
    def __init__(self, realm: JsonObject, notes: Notes) -> None:
        self._realm = text_of(realm, "realm")
        self._notes = notes
        self._groups = list(self._read(objects_of(realm, "groups"), (), []))

    def mapping(self, roles: RealmRoles) -> dict[str, list[Fields]]:
        return {
            group.path: [*([{"tag": group.tag}] if group.tag else []), *roles.targets(group.roles)]
            for group in self._groups
        }

    def records(self, project_id: str) -> dict[str, Fields]:
        """Returns the groups of the project by their paths. The id of a group is the same at each import."""
        records: dict[str, Fields] = {}
        titles: set[str] = set()
        for group in self._groups:
            title = re.sub(r"[^A-Za-z0-9_]", " ", group.path.removeprefix("/"))
            note = self._notes.about(f"group {group.path[:80]}")
            if not group.tag:
                continue  # its note says that it has no tag
            if len(title) > MAX_TITLE or not title.strip():
                note(f"it becomes a tag only: the title of a group has at most {MAX_TITLE} characters")
            elif title in titles:
                note(f"it becomes a tag only: another group has become {title!r}")
            elif len(group.tags) > MAX_CONDITIONS:
                note(f"it becomes a tag only: there are more than {MAX_CONDITIONS} groups below it")
            else:
                titles.add(title)
                records[group.path] = {
                    "group_id": self._id(project_id, group.path),
                    "project_id": project_id,
                    "title": title,
                    "description": f"The group {group.path} of Keycloak",
                    "conditions": [{"title": tag, "condition": {"tag": tag}} for tag in group.tags],
                }
        return records

    def _id(self, project_id: str, path: str) -> str:
        return hashlib.sha256("\0".join((project_id, self._realm, path)).encode()).hexdigest()[:24]

    def _read(self, groups: list[JsonObject], above: tuple[_Group, ...], taken: list[str]) -> Iterator[_Group]:
        for item in groups:
            parent = above[-1] if above else _Group("", [])
            names = [*parent.roles, *role_names(item, "realmRoles", "clientRoles")]
            group = _Group(f"{parent.path}/{text_of(item, 'name')}", names)
            self._set_tag(group, taken)
            for member in (*above, group):
                member.tags += [group.tag] if group.tag else []
            if item.get("attributes"):
                self._notes.add(f"group {group.path[:80]}", "its attributes are left out")
            yield group
            yield from self._read(objects_of(item, "subGroups"), (*above, group), taken)

    def _set_tag(self, group: _Group, taken: list[str]) -> None:
        tag = group.path.removeprefix("/").replace(",", "_")
        if len(tag) > MAX_TAG or not tag.isprintable():
            problem = f"a tag has at most {MAX_TAG} printable characters"
        elif tag in taken:
            problem = f"another group has become {tag!r}"
        else:
            taken.append(tag)
            group.tag = tag
            return
        self._notes.add(f"group {group.path[:80]}", f"its members get its roles, but no tag: {problem}")
