"""What a write may change. The writer locks it, and finds the users that the write affects."""

from collections.abc import Hashable, Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple

from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID

MAX_FEW = 20


class Scope(Struct, frozen=True):
    """The records that a write may change; scopes are combined with ``|``, and many with `union`.

    A scope must name everything that the write changes, otherwise the write may wait for a lock in the wrong order, and
    changes of permissions are not seen. It may name more.
    """

    # Data and roles of users, by user and application. A user is named by id or login.
    records: frozenset[tuple[str, int]] = frozenset()
    # Applications: their fields, schema, roles, project.
    applications: frozenset[int] = frozenset()
    # Roles that the write saves, by application and name.
    roles: frozenset[tuple[int, str]] = frozenset()
    # Roles whose assignments the write may remove.
    removed_roles: frozenset[tuple[int, str]] = frozenset()
    # Projects: their settings, memberships, groups.
    projects: frozenset[str] = frozenset()
    # Users, by id or login, whose attributes (login, tags, purchases) the write may change.
    accounts: frozenset[str] = frozenset()
    # Applications that the write reads, such as their roles, and that must not change meanwhile.
    read_applications: frozenset[int] = frozenset()

    @classmethod
    def record(cls, user_id: str, application_id: int) -> "Scope":
        """Names the data and roles of a user at an application."""
        return cls(records=frozenset(((user_id, application_id),)))

    @classmethod
    def application(cls, application_id: int) -> "Scope":
        """Names the schema and the roles of an application; no role is removed, and it stays in its project."""
        return cls(applications=frozenset((application_id,)))

    @classmethod
    def role(cls, application_id: int, name: str, *, removed: bool = False) -> "Scope":
        """Names one role. A generic role leaves the memberships of projects when it becomes protected."""
        may_be_removed = removed or application_id == CENTRAL_APPLICATION_ID
        role = frozenset(((application_id, name),))
        removed_roles = role if may_be_removed else frozenset()
        return cls(applications=frozenset((application_id,)), roles=role, removed_roles=removed_roles)

    @classmethod
    def project(cls, *project_ids: str | None, read_applications: Iterable[int] = ()) -> "Scope":
        """Names the settings, memberships and groups of projects.

        ``read_applications`` are those whose roles the write names.
        """
        return cls(
            projects=frozenset(project_id for project_id in project_ids if project_id is not None),
            read_applications=frozenset(read_applications),
        )

    @classmethod
    def account(cls, user: str) -> "Scope":
        """Names the login, tags and purchases of a user, which conditions compare with.

        ``user`` is an id or a login.
        """
        return cls(accounts=frozenset((user,)))

    @classmethod
    def union(cls, scopes: Iterable["Scope"]) -> "Scope":
        """Names what any of the scopes names."""
        parts = (astuple(scope) for scope in scopes)
        return cls(*(frozenset[Any]().union(*sets) for sets in zip(*parts, strict=True)))

    def __or__(self, other: "Scope") -> "Scope":
        return Scope.union((self, other))

    @property
    def is_few_records(self) -> bool:
        """Whether the write changes only records, of a few users that are named by their ids."""
        others = self.applications or self.projects or self.accounts
        return not others and len(self.records) <= MAX_FEW and all("@" not in user for user, _ in self.records)

    @property
    def is_expensive(self) -> bool:
        """Whether the write may affect many users, so that its evaluation may take seconds."""
        return bool(self.applications or self.projects or len(self.records) + len(self.accounts) > MAX_FEW)

    @property
    def lanes(self) -> tuple[Hashable, ...]:
        """What an expensive write shares with others, of which one is evaluated at a time."""
        applications = (("application", key) for key in self.changed_applications)
        return (*applications, *(("project", key) for key in self.projects))

    @property
    def changed_applications(self) -> frozenset[int]:
        """The applications of which a row or a user's record changes."""
        return self.applications | {application_id for _, application_id in self.records}
