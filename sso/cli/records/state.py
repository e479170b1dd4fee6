"""The state of the service as a document, and its nodes."""

from collections.abc import Sequence

from sso.cli.records.api import CommandApi
from sso.cli.records.types import Fields, Records
from sso.client import RecordNotFound, state, system, users
from sso.core.operator_call import Progress


class ManagedState:
    def __init__(self, api: CommandApi) -> None:
        self._api = api

    async def apply(self, document: Fields, show_progress: Progress, *, dry_run: bool, override: bool) -> Fields:
        call = state.apply(document, dry_run=dry_run, override=override)
        return await self._api.send_with_progress(call, show_progress)

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

    async def nodes(self) -> Records:
        return [_node(node) for node in (await self._api.send(system()))["nodes"]]


def _node(node: Fields) -> Fields:
    return {
        "node": node["name"],
        "state": "silent" if node["is_silent"] else "running",
        "version": ", ".join(node["versions"]),
        "schema": ", ".join(node["schema_versions"]),
        "workers": node["workers"],
        "held_polls": node["held_polls"],
        "sockets": node["sockets"],
        "clock": round(node["clock_offset_s"], 1) + 0.0,  # not -0.0
        "seen_s_ago": node["seen_s_ago"],
        "up_s": node["up_s"],
        "notes": "; ".join(node["notes"]),
    }
