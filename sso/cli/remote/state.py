"""The state of a server."""

from collections.abc import Sequence

from sso.cli.administration import Fields, ShowProgress
from sso.client import AsyncSsoClient, RecordNotFound, state, users


class RemoteState:
    def __init__(self, api: AsyncSsoClient) -> None:
        self._api = api

    async def apply(self, document: Fields, show_progress: ShowProgress, *, dry_run: bool, override: bool) -> Fields:
        return await self._api.send(state.apply(document, dry_run=dry_run, override=override))

    async def logins(self, user_ids: Sequence[str]) -> dict[str, str]:
        logins = {}
        for user_id in dict.fromkeys(user_ids):
            try:
                logins[user_id] = (await self._api.send(users.get(user_id)))["login"]
            except RecordNotFound:  # a user whom the document would create
                continue
        return logins

    async def export(self) -> Fields:
        return await self._api.send(state.export())
