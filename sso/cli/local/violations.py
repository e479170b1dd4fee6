"""Refused requests in the database of this machine."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from sso.cli.administration import Fields
from sso.core.moments import rfc3339
from sso.gsid.violations import find_violation

if TYPE_CHECKING:
    from sso.cli.services import CommandServices


class LocalViolations:
    def __init__(self, services: "CommandServices") -> None:
        self._services = services

    async def find(self, violation_id: str) -> Fields | None:
        record = await find_violation(self._services.database, violation_id)
        return asdict(record) | {"created": rfc3339(record.created)} if record else None
