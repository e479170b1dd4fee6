"""Permissions, the audit trail, and refused requests."""

from typing import Any

from sso.cli.lookups import unknown_application
from sso.cli.records.api import PAGE, CommandApi
from sso.cli.records.projects import ManagedProjects
from sso.cli.records.types import AuditCriteria, Fields
from sso.cli.records.users import ManagedUsers
from sso.client import (
    RecordNotFound,
    audit,
    check_assertions,
    effective_permissions,
    explain_rule,
    rule_holders,
    user_rules,
    violations,
)


class ManagedAudit:
    def __init__(self, api: CommandApi, users: ManagedUsers, projects: ManagedProjects) -> None:
        self._api = api
        self._users = users
        self._projects = projects

    async def entries(self, criteria: AuditCriteria, limit: int) -> list[Fields]:
        query = audit.list(
            limit=min(PAGE, limit),
            actor=(await self._users.find(criteria.user))["user_id"] if criteria.user else None,
            operation=criteria.operation,
            project_id=(await self._projects.find(criteria.project))["id"] if criteria.project else None,
            application_id=criteria.application_id,
            since=criteria.since,
        )
        return list(await self._api.records(query, limit))


class ManagedPermissions:
    def __init__(self, api: CommandApi, users: ManagedUsers) -> None:
        self._api = api
        self._users = users

    async def render(self, user: str, application_id: int, kind: str, at: int | None) -> Any:
        account = await self._users.find(user)
        try:
            return await self._api.send(effective_permissions(account["user_id"], application_id, kind, at))
        except RecordNotFound:
            raise unknown_application(application_id) from None

    async def explain(self, user: str, rule: str, application_id: int, at: int | None) -> tuple[str, Fields]:
        account = await self._users.find(user)
        try:
            return account["login"], await self._api.send(explain_rule(account["user_id"], rule, application_id, at))
        except RecordNotFound:
            raise unknown_application(application_id) from None

    async def holders(self, rule: str, application_id: int, limit: int, **options: Any) -> list[Fields]:
        """Returns the users who have the rule. Options: project_id, at, reason."""
        call = rule_holders(application_id, rule, limit=min(PAGE, limit), **options)
        try:
            return list(await self._api.records(call, limit))
        except RecordNotFound:
            raise unknown_application(application_id) from None

    async def rules(self, user: str, limit: int, **options: Any) -> list[Fields]:
        """Returns the rules of a user. Options: application_id, rule, at, reason."""
        account = await self._users.find(user)
        return list(await self._api.records(user_rules(account["user_id"], limit=min(PAGE, limit), **options), limit))

    async def test_assertions(self, application_id: int | None) -> Fields:
        try:
            return await self._api.send(check_assertions(application_id))
        except RecordNotFound:
            assert application_id is not None
            raise unknown_application(application_id) from None


class ManagedViolations:
    def __init__(self, api: CommandApi) -> None:
        self._api = api

    async def find(self, violation_id: str) -> Fields | None:
        try:
            record = await self._api.send(violations.get(violation_id))
        except RecordNotFound:
            return None
        names = ("id", "created", "gsid", "reason", "expected", "found", "address")
        return {name: record[name] for name in names if name in record}
