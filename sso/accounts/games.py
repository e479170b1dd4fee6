"""The games that a user is signed in to, with the names that people know them by."""

from dataclasses import dataclass

from sso.accounts.applications import ApplicationsAtLogin
from sso.accounts.model import applications
from sso.accounts.sign_ins import GameLine, SignIns


@dataclass(frozen=True)
class NamedGame:
    title: str  # "" if the sign-in named no application
    line: GameLine


class Games:
    def __init__(self, sign_ins: SignIns, named: ApplicationsAtLogin) -> None:
        self._sign_ins = sign_ins
        self._applications = named

    async def list(self, user_id: str) -> list[NamedGame]:
        lines = await self._sign_ins.list(user_id)
        titles = {
            pair: await self._applications.title(applications(*pair))
            for pair in {(line.app_id, line.gapp_id) for line in lines}
        }
        return [NamedGame(titles[line.app_id, line.gapp_id], line) for line in lines]

    async def end(self, user_id: str, ids: str) -> None:
        """Sign out of a line of the list; ``ids`` are its sign-ins, separated by spaces."""
        await self._sign_ins.end(user_id, ids.split())
