"""Types of records as commands read and print them, and of changes to them."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from sso.perm.engine.records import Assignment, RoleRecord

Fields: TypeAlias = dict[str, Any]
Records: TypeAlias = list[Fields]

# Functions of a command that get what is stored and return what is to be stored. They may be called several times.
RecordChange: TypeAlias = Callable[[Fields], Fields]  # returns the fields that change
RoleChange: TypeAlias = Callable[[Mapping[str, RoleRecord]], Fields | None]  # None deletes the role
AssignmentChange: TypeAlias = Callable[[list[Assignment]], list[Assignment]]
MemberChange: TypeAlias = Callable[[Fields], Fields]  # of the roles in a project; no roles: the user leaves it


class AuditCriteria(Struct, frozen=True):
    project: str | None = None
    application_id: int | None = None
    user: str | None = None
    operation: str | None = None
    since: int | None = None
