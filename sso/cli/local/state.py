"""The state of the database of this machine."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sso.cli.administration import Fields, ShowProgress
from sso.db.statement import Statement
from sso.perm.changes.writer import WriteMode
from sso.state.document import parse
from sso.state.export import export
from sso.upstream.provider_store import TOPIC as PROVIDERS_TOPIC

if TYPE_CHECKING:
    from sso.cli.services import CommandServices

_LOGINS = Statement("SELECT user_id, login FROM users WHERE user_id = ANY(CAST(:ids AS text[]))")


class LocalState:
    def __init__(self, services: "CommandServices") -> None:
        self._services = services

    async def apply(self, document: Fields, show_progress: ShowProgress, *, dry_run: bool, override: bool) -> Fields:
        parsed = parse(document)
        mode = WriteMode(dry_run, override, self._services.actor)
        report = await self._services.applier.run(parsed, mode, show_progress)
        if dry_run:
            return report.json
        if parsed.identity_providers:
            self._services.bus.publish(PROVIDERS_TOPIC)
        counts = report.counts
        numbers = {"created": counts.created, "changed": counts.changed, "unchanged": counts.unchanged}
        return {**numbers, "warnings": list(counts.warnings)}

    async def logins(self, user_ids: Sequence[str]) -> dict[str, str]:
        rows = await self._services.database.rows(_LOGINS, ids=list(user_ids))
        return {row["user_id"]: row["login"] for row in rows}

    async def export(self) -> Fields:
        return await export(self._services.database, actor=self._services.actor)
