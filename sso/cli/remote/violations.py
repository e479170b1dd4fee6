"""Refused requests of a server."""

from sso.cli.administration import Fields
from sso.client import AsyncSsoClient, RecordNotFound, violations


class RemoteViolations:
    def __init__(self, api: AsyncSsoClient) -> None:
        self._api = api

    async def find(self, violation_id: str) -> Fields | None:
        try:
            record = await self._api.send(violations.get(violation_id))
        except RecordNotFound:
            return None
        names = ("id", "created", "gsid", "reason", "expected", "found", "address")
        return {name: record[name] for name in names if name in record}
