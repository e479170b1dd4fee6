"""The export of a user with the data that games have: it is prepared in the background, and can then be downloaded."""

import zipfile
from collections.abc import Sequence
from contextlib import ExitStack
from tempfile import TemporaryFile
from typing import IO

import orjson
import trio
from msgspec import Struct

from sso.accounts.user_store import lock_user
from sso.core.errors import NotFound
from sso.core.moments import rfc3339
from sso.db.database import Database
from sso.db.rate_limit import WindowLimiter
from sso.db.transaction import Transaction
from sso.personal_data.export import export_user
from sso.personal_data.games.model import DataRequest, RequestState
from sso.personal_data.games.request_store import add_export, read_content, read_export
from sso.personal_data.games.used_application_store import used_applications

MAX_STARTED, START_WINDOW_S = 3, 86400  # for one user
ACCOUNT_FILE = "account-data.json"
INDEX_FILE = "games.json"


class GameExport(Struct, frozen=True):
    """The requests of an export to games, in the order of the applications. Without any, there is no export."""

    requests: Sequence[DataRequest]

    @property
    def is_ready(self) -> bool:
        return bool(self.requests) and not any(request.is_open for request in self.requests)


class GameExports:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._started = WindowLimiter("game export", MAX_STARTED, START_WINDOW_S)
        self._archives = trio.CapacityLimiter(1)  # one is written at a time

    async def read(self, user_id: str) -> GameExport:
        return GameExport(await read_export(self._database, user_id))

    async def start(self, user_id: str) -> GameExport | int:
        """Asks the games that the user has used. An export that is being prepared goes on instead.

        Returns the export, which is empty if no game has to be asked, or the seconds until another one may start.
        """
        wait_s: int = await self._database.transaction(self._start, user_id)
        return wait_s or await self.read(user_id)

    async def _start(self, tx: Transaction, user_id: str) -> int:
        if await lock_user(tx, user_id) is None:
            raise NotFound
        if any(request.is_open for request in await read_export(tx, user_id)):
            return 0
        applications = await used_applications(tx, user_id)
        if not any(True for used in applications for _ in used.sources.of_export()):
            return 0
        if wait_s := await self._started.add(tx, user_id):
            return wait_s
        await add_export(tx, user_id, applications)
        return 0

    async def archive(self, user_id: str, export: GameExport) -> IO[bytes]:
        """Returns an open ZIP file: the data of the account, an index of what games were asked, and their answers.

        A client that reads it slowly takes no memory. The caller closes it.
        """
        account = await export_user(self._database, user_id)
        names = file_names(export.requests)
        index = [_entry(request, names.get(request.id)) for request in export.requests]
        async with self._archives:
            with ExitStack() as stack:
                file = stack.enter_context(TemporaryFile())
                with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                    await _add(archive, ACCOUNT_FILE, account)
                    await _add(archive, INDEX_FILE, orjson.dumps(index, option=orjson.OPT_INDENT_2))
                    for request_id, name in names.items():
                        await _add(archive, name, (await read_content(self._database, request_id)).encode())
                stack.pop_all()  # it stays open
                return file


async def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    await trio.to_thread.run_sync(archive.writestr, name, content)


def file_names(requests: Sequence[DataRequest]) -> dict[int, str]:
    """Returns the file of each answer, such as ``games/10/data-1.json``. Names come from ids, never from games."""
    names: dict[int, str] = {}
    for request in requests:
        if request.state == RequestState.DONE:
            stem = f"games/{request.application_id}/{request.kind}-"
            number = sum(name.startswith(stem) for name in names.values()) + 1
            names[request.id] = f"{stem}{number}.json"
    return names


def _entry(request: DataRequest, name: str | None) -> dict[str, object]:
    return {
        "application_id": request.application_id,
        "application": request.application_name,
        "kind": request.kind,
        "user_id": request.subject_id,
        "request_id": request.request_id,
        "state": request.state,
        "file": name,
        "problem": request.problem,
        "requested_at": rfc3339(request.created),
        "finished_at": rfc3339(request.finished) if request.finished else None,
    }
