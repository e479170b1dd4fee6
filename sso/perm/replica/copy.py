"""The users of a replica, each as the bytes of a row without the id. Equal rows are stored once.

Most users of a game have nothing of their own, so a million users take little more than their ids. Users with equal
rows have equal permissions, unless a condition names one of them: they are computed once for all of them.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import orjson
from msgspec.structs import replace

from sso.core.ban import read_bans
from sso.perm.engine.facts import PermissionFacts, ProjectFacts
from sso.perm.engine.records import Assignment, OwnRecord
from sso.perm.engine.user_facts import UserFacts
from sso.perm.replica.definition import Definition, right_tree
from sso.perm.stores.loaded_facts import LoadedFacts

MAX_LOADED = 20_000  # users, or groups of equal users, whose permissions are kept
MAX_MERGES = 100  # one after the other; while changes are applied, two users may seem to be merged into each other
NOBODY = orjson.dumps([None, None, None, False, None, None, None, None])  # the row of a user without anything


class ReplicaCopy:
    """Is changed by one thread at a time, and may be read by another meanwhile: what is computed is kept under the
    contents of the row and for one definition, so it cannot be out of date."""

    def __init__(self, definition: Definition) -> None:
        self._rows: dict[str, bytes] = {}
        self._aliases: dict[str, str] = {}  # users who were merged, each with the user into whom
        self._shared: dict[bytes, bytes] = {NOBODY: NOBODY}
        self.use(definition)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, user_id: str) -> bool:
        return user_id in self._rows

    @property
    def definition(self) -> Definition:
        return self._current[0]

    def use(self, definition: Definition) -> None:
        loaded: OrderedDict[Any, LoadedFacts] = OrderedDict()
        self._current = definition, loaded

    def add(self, rows: Iterable[list[Any]]) -> None:
        """Adds or replaces users. A row begins with the id of its user."""
        for user_id, *row in rows:
            self.add_encoded(user_id, orjson.dumps(row))
        if len(self._shared) > 2 * len(self._rows) + 1000:  # rows that nobody has any more
            self._shared = {row: row for row in (NOBODY, *self._rows.values())}

    def remove(self, user_ids: Iterable[str]) -> None:
        for user_id in user_ids:
            self._rows.pop(user_id, None)
            self._aliases.pop(user_id, None)

    def rows(self) -> Iterable[tuple[str, bytes]]:
        """The users with their rows, for a copy on disk."""
        return self._rows.items()

    def add_encoded(self, user_id: str, row: bytes) -> None:
        self._rows[user_id] = self._shared.setdefault(row, row)
        if row.endswith(b'"]'):  # no other row ends with a text
            self._aliases[user_id] = orjson.loads(row)[-1]
        else:
            self._aliases.pop(user_id, None)

    def load(self, user_id: str, *, exact: bool = False) -> LoadedFacts:
        """Returns the facts about a user, who may not exist.

        Facts about a user who was merged into another one are those about that one. Unless ``exact``, they may be those
        of another user with the same permissions.
        """
        user_id = self._merged_into(user_id)
        (definition, loaded), row = self._current, self._rows.get(user_id)
        is_named = exact or row is None or user_id in definition.named_users
        key: Any = (user_id, row) if is_named else row
        known = loaded.get(key)
        if known is None:
            known = loaded[key] = _loaded_facts(definition, user_id, row)
            if len(loaded) > MAX_LOADED:
                loaded.popitem(last=False)
        return known

    def _merged_into(self, user_id: str) -> str:
        for _ in range(MAX_MERGES):
            into = self._aliases.get(user_id)
            if into is None or into not in self._rows:
                break
            user_id = into
        return user_id


def _loaded_facts(definition: Definition, user_id: str, row: bytes | None) -> LoadedFacts:
    domain, tags, purchases, is_guest, bans, own, roles, groups, *_ = orjson.loads(row or NOBODY)
    user = UserFacts(user_id, domain or "", frozenset(tags or ()), frozenset(purchases or ()), None, is_guest)
    facts = PermissionFacts(
        user=user,
        own=_own_record(own, roles),
        removed=definition.stored["removed"],
        home=_with_member(definition.project, user_id, frozenset(groups or ())),
        bans=read_bans(bans),
    )
    return LoadedFacts(definition.application, facts, row is not None, definition.stored["name"], {})


def _own_record(own: list[Any] | None, roles: list[list[Any]] | None) -> OwnRecord:
    assignments = tuple(Assignment(name, expired or 0, ttl or 0) for name, expired, ttl in roles or ())
    if own is None:
        return OwnRecord(assignments)
    public_data, private_data, right = own
    return OwnRecord(assignments, public_data or {}, private_data or {}, right_tree(right))


def _with_member(project: ProjectFacts | None, user_id: str, groups: frozenset[str]) -> ProjectFacts | None:
    if project is None or not groups:
        return project
    member = frozenset((user_id,))
    return replace(
        project,
        groups=tuple(replace(group, users=member) if group.id in groups else group for group in project.groups),
    )
