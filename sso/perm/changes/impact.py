"""What a write changes: who gains and who loses which permissions, in the notation of ``list`` (§4.5)."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

MAX_EXACT_USERS = 10_000  # a write that may affect more users is evaluated for these only
MAX_COUNTED_USERS = 50_000  # to count ten million users who may be affected takes minutes
MAX_EXAMPLES = 100  # of affected users, in a dry run that is not exact
MAX_LISTED_BYTES = 8_000_000  # of the texts of all changes of a write; the users of a longer list are only counted
COUNTED_IN = 1000  # steps of the numbers of users who may be affected, for callers who may not read them


class PermissionChange(NamedTuple):
    """The permissions that one user gains and loses at one application."""

    user_id: str
    application_id: int
    gained: tuple[str, ...]
    lost: tuple[str, ...]

    @property
    def size(self) -> int:
        """Returns about how many bytes the change has in an event or an answer."""
        return sum(len(entry) + 3 for entries in (self.gained, self.lost) for entry in entries)

    @property
    def json(self) -> dict[str, Any]:
        return {
            "user_id": self.user_id,
            "application_id": self.application_id,
            "gained": list(self.gained),
            "lost": list(self.lost),
        }


def permission_change(
    user_id: str, application_id: int, before: Iterable[str], after: Iterable[str]
) -> PermissionChange | None:
    """Returns None if nothing changed."""
    old, new = set(before), set(after)
    if old == new:
        return None
    return PermissionChange(user_id, application_id, tuple(sorted(new - old)), tuple(sorted(old - new)))


class FailedAssertion(NamedTuple):
    application_id: int
    statement: str
    reason: str
    users: tuple[str, ...] = ()  # the ids of users who violate it; at most a few

    def without_users(self) -> "FailedAssertion":
        """For callers who may not read which users there are, and what they may do."""
        return self._replace(reason="it does not hold", users=())

    @property
    def json(self) -> dict[str, Any]:
        return {
            "application_id": self.application_id,
            "assertion": self.statement,
            "reason": self.reason,
            "users": list(self.users),
        }


class Impact(Struct, frozen=True):
    changes: Sequence[PermissionChange] = ()
    total: int = 0  # affected users; if the impact is not exact, users who may be affected
    # How many users may be affected, by application, where they are more than were evaluated.
    unevaluated: Mapping[int, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    failed_assertions: Sequence[FailedAssertion] = ()
    # Applications of which roles or projects may have changed, and users with other facts there, although their
    # permissions are the same at the moment. A copy of the facts must be read again.
    touched: Mapping[int, Collection[str]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, changes: Sequence[PermissionChange], unevaluated: Mapping[int, int], warnings: Iterable[str]
    ) -> "Impact":
        users = {change.user_id for change in changes}
        total = max((len(users), *unevaluated.values()))
        return cls(sorted(changes, key=_order), total, unevaluated, tuple(warnings))

    @property
    def is_exact(self) -> bool:
        return not self.unevaluated

    def visible(self, select: Callable[[PermissionChange], PermissionChange | None]) -> "Impact":
        """Returns the impact with the parts of each change that ``select`` returns.

        Users without such a part are not counted: the caller could choose conditions such that a number tells an
        attribute of one user. For the same reason, the numbers of users who were not evaluated are rounded.
        """
        shown = [part for change in self.changes if (part := select(change)) is not None]
        rounded = {key: count // COUNTED_IN * COUNTED_IN for key, count in self.unevaluated.items()}
        return replace(Impact.of(shown, rounded, self.warnings), failed_assertions=self.failed_assertions)

    def without_violators(self) -> "Impact":
        """Returns the impact without the names of users who violate an assertion."""
        return replace(self, failed_assertions=[failed.without_users() for failed in self.failed_assertions])

    def json(self, *, with_application: bool = True) -> dict[str, Any]:
        """Returns the members of the response to a dry run.

        ``with_application`` shows the application of each change.
        """
        changes = self.changes if self.is_exact else self.changes[:MAX_EXAMPLES]
        users = [change.json for change in changes]
        if not with_application:
            for user in users:
                del user["application_id"]
        return {
            "dry_run": True,
            "users": users,
            "total": self.total,
            "exact": self.is_exact,
            "warnings": [*self.warnings, *self._sampling_warnings()],
            "failed_assertions": [failed.json for failed in self.failed_assertions],
        }

    def _sampling_warnings(self) -> list[str]:
        return [
            f"application {application_id}: {_number(count)} users may be affected; "
            f"at most {MAX_EXAMPLES} of them are listed"
            for application_id, count in sorted(self.unevaluated.items())
        ]


def _number(count: int) -> str:
    if not count:  # rounded
        return f"fewer than {COUNTED_IN:,}"
    return f"at least {count:,}" if count >= MAX_COUNTED_USERS else f"{count:,}"


def _order(change: PermissionChange) -> tuple[int, int, str]:
    return change.application_id, len(change.user_id), change.user_id
