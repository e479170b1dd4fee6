"""The state of the database of this machine."""

from typing import TYPE_CHECKING

from sso.cli.administration import AppliedState, Fields, ShowProgress
from sso.state.document import parse
from sso.state.export import export
from sso.upstream.provider_store import TOPIC as PROVIDERS_TOPIC

if TYPE_CHECKING:
    from sso.cli.services import CommandServices


class LocalState:
    def __init__(self, services: "CommandServices") -> None:
        self._services = services

    async def apply(self, document: Fields, show_progress: ShowProgress) -> AppliedState:
        parsed = parse(document)
        counts = await self._services.applier.apply(parsed, show_progress)
        if parsed.identity_providers:
            self._services.bus.publish(PROVIDERS_TOPIC)
        return AppliedState(counts.created, counts.changed, counts.unchanged, list(counts.warnings))

    async def export(self) -> Fields:
        return await export(self._services.database)
