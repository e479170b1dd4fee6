"""Dry runs, compared with what the same write then really changes."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.kit.browser import query
from tests.perm.endpoints.conftest import ApiUser, Studio, studio

__all__ = ["studio"]

TABLES = (
    *("applications", "roles", "user_records", "role_assignments", "projects", "project_names", "project_members"),
    *("user_groups", "group_users", "audit", "access_keys", "application_keys", "users", "change_events"),
)
# An event gets its position in the stream some time after the write.
_DUMP = " UNION ALL ".join(
    f"SELECT '{table}' AS name, md5(coalesce(string_agg(line, '|' ORDER BY line), ''))"
    f" FROM (SELECT (to_jsonb(t) - 'position')::text AS line FROM {table} t) AS lines"
    for table in TABLES
)

Changes = dict[tuple[str, int], tuple[list[str], list[str]]]  # (user, application) → gained, lost


def dump(studio: Studio) -> dict[str, str]:
    """A digest of every table that a write of permissions may change."""
    return {row[0]: row[1] for row in query(studio.server, _DUMP)}


@dataclass(frozen=True)
class Trial:
    """Users and applications whose permissions are compared."""

    studio: Studio
    users: tuple[ApiUser, ...]
    applications: tuple[int, ...]

    def permissions(self) -> dict[tuple[str, int], set[str]]:
        return {
            (user.user_id, application_id): self._permissions_of(user, application_id)
            for user in self.users
            for application_id in self.applications
        }

    def _permissions_of(self, user: ApiUser, application_id: int) -> set[str]:
        """Returns the permissions of a user, which are none at a removed application."""
        body: dict[str, Any] = {"application_id": application_id, "data": {"user_id": user.user_id}}
        response = self.studio.root.call("meta/data", action="get", **body)
        assert response.status in (200, 403), response.body
        return set(response.data if response.status == 200 else ())

    def dry_run(self, path: str, caller: ApiUser | None = None, /, **body: Any) -> dict[str, Any]:
        options = body.pop("options", {}) | {"dry_run": True}
        response = (caller or self.studio.root).call(path, **body, options=options)
        assert response.status == 200, response.body
        assert response.body["dry_run"] is True
        return response.body

    def check(self, path: str, **body: Any) -> Changes:
        """Dry run a write, and compare it with the difference of what meta/data answers before and after it.

        That a dry run changes nothing is for test_dry_run.py, and for `dump`.
        """
        before = self.permissions()
        predicted = self.dry_run(path, **body)
        response = self.studio.root.call(path, **body)
        assert response.status == 200, response.body
        after = self.permissions()
        actual = {
            key: (sorted(after[key] - before[key]), sorted(before[key] - after[key]))
            for key in before
            if before[key] != after[key]
        }
        shown = changes_of(predicted, self.applications)
        assert {key: change for key, change in shown.items() if key in before} == actual
        return actual


def changes_of(body: dict[str, Any], applications: Iterable[int]) -> Changes:
    """The changes of a response. A response about one application does not repeat its id."""
    return {
        (user["user_id"], user.get("application_id", next(iter(applications)))): (user["gained"], user["lost"])
        for user in body["users"]
    }


@pytest.fixture(scope="module")
def people(studio: Studio) -> tuple[ApiUser, ...]:
    return tuple(studio.user(login=f"{name}@changes.example", tags=tags) for name, tags in _PEOPLE)


_PEOPLE: tuple[tuple[str, list[str]], ...] = (
    ("ann", ["changes_vip"]),
    ("bob", []),
    ("cat", ["changes_vip", "changes_beta"]),
    ("dan", []),
)
