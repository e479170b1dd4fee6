"""The state of a server."""

from sso.cli.administration import AppliedState, Fields, ShowProgress
from sso.client import AsyncSsoClient, state


class RemoteState:
    def __init__(self, api: AsyncSsoClient) -> None:
        self._api = api

    async def apply(self, document: Fields, show_progress: ShowProgress) -> AppliedState:
        answer = await self._api.send(state.apply(document))
        return AppliedState(answer["created"], answer["changed"], answer["unchanged"], answer.get("warnings", []))

    async def export(self) -> Fields:
        return await self._api.send(state.export())
