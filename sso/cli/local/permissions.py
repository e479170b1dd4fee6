"""Permissions and the audit trail in the database of this machine."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sso.audit import trail
from sso.audit.trail import AuditFilter
from sso.cli.administration import AuditCriteria, Fields
from sso.cli.local.lookups import require_application, require_project, require_user
from sso.cli.lookups import unknown_application

if TYPE_CHECKING:
    from sso.accounts.model import User
    from sso.cli.services import CommandServices
    from sso.perm.stores.loaded_facts import LoadedFacts

PAGE = 200  # entries that are read at a time
TEST_SECONDS = 600.0


class LocalAudit:
    def __init__(self, services: "CommandServices") -> None:
        self._services = services

    async def entries(self, criteria: AuditCriteria, most: int) -> list[Fields]:
        database, user = self._services.database, criteria.user
        wanted = AuditFilter(
            project_id=(await require_project(database, criteria.project))["id"] if criteria.project else None,
            application_id=criteria.application_id,
            user_id=(await require_user(self._services, user)).user_id if user else None,
            operation=criteria.operation,
            since=criteria.since,
        )
        entries: list[Fields] = []
        while len(entries) < most:
            page = await trail.read(database, replace(wanted, limit=min(PAGE, most - len(entries))))
            entries += page
            if not page:
                break
            wanted = replace(wanted, before_id=page[-1]["id"])
        return entries


class LocalPermissions:
    def __init__(self, services: "CommandServices") -> None:
        self._services = services

    async def render(self, user: str, application_id: int, kind: str, at: int | None) -> Any:
        loaded, now = await self._load(await require_user(self._services, user), application_id, at)
        return loaded.render(kind, now)

    async def explain(self, user: str, rule: str, application_id: int, at: int | None) -> tuple[str, Fields]:
        account = await require_user(self._services, user)
        loaded, now = await self._load(account, application_id, at)
        return account.login, loaded.explain(rule, now)

    async def test_assertions(self, application_id: int | None) -> Fields:
        from sso.perm.changes.assertion_report import check_assertions

        services = self._services
        if application_id is not None:
            await require_application(services.database, application_id)
        now = await services.database_time()
        report = await services.database.long_transaction(
            TEST_SECONDS, check_assertions, services.facts, now, application_id
        )
        return report.json

    async def _load(self, user: "User", application_id: int, at: int | None) -> "tuple[LoadedFacts, int]":
        """Returns the facts and the moment that they belong to."""
        facts = self._services.facts
        if at is not None:
            return await facts.past.load(user.user_id, application_id, None, at, path=("--at",), caller="operator"), at
        loaded = await facts.load(user.user_id, application_id, None)
        if loaded is None:
            raise unknown_application(application_id)
        return loaded, await self._services.database_time()
