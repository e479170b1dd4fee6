"""Key files of nodes in the database: every node knows them, and a conflict is logged and not resolved."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import structlog
import trio

from sso.audit.trail import AuditActor
from sso.core.errors import NotFound
from sso.core.keys import GENERATE, PrivateKey, key_id, public_pem
from sso.db.database import Database
from sso.db.statement import Statement
from sso.perm.credentials.application_keys import ApplicationKeys
from sso.perm.credentials.key_file_import import KeyFileImport
from sso.perm.credentials.key_files import KeyFiles
from sso.perm.stores.application_keys import delete_custom_key
from sso.services import Services

APPLICATION = 40
_ADD_APPLICATION = Statement("INSERT INTO applications (application_id, name) VALUES (:application_id, 'Tanks')")
_ADD_NODE = Statement(
    """INSERT INTO node_workers (worker, node, host, pid, version, schema_version, base_url, workers, held_polls,
        sockets, clock_offset, started, last_seen, expires)
    VALUES (:node, :node, '', 1, '', '', '', 1, 0, 0, 0, now(), now(), now() + interval '1 day')"""
)
_STOP_NODE = Statement("UPDATE node_workers SET last_seen = now() - interval '2 minutes' WHERE node = :node")
_AUDIT = Statement("SELECT operation, target, operator FROM audit WHERE operator LIKE 'keys/%' ORDER BY id")


class FileNode:
    """The key files of a node."""

    def __init__(self, database: Database, folder: Path, name: str) -> None:
        self.folder = folder / name
        self.folder.mkdir()
        self._files = KeyFiles(self.folder)
        self.keys = ApplicationKeys(database, self._files, name)
        self._start = partial(KeyFileImport, database, self._files, name)
        self.importing = self._start()

    async def restart(self) -> None:
        self.importing = self._start()
        await self.importing.import_changes()

    def write(self, key: PrivateKey, application_id: int = APPLICATION) -> None:
        """Replaces the file, so that it is another inode even within one tick of the clock."""
        draft = self.folder / "draft"
        draft.write_text(public_pem(key.public_key()))
        draft.rename(self.folder / f"{application_id}.pem")

    async def trusts(self, key: PrivateKey) -> bool:
        return await self.keys.find(APPLICATION, key_id(key.public_key())) is not None


@pytest.fixture
def keys() -> tuple[PrivateKey, PrivateKey]:
    return GENERATE["ES256"](), GENERATE["ES256"]()


@pytest.fixture
async def add_node(services: Services, tmp_path: Path) -> Callable[[str], Any]:
    await services.database.value(_ADD_APPLICATION, application_id=APPLICATION)

    async def add(name: str) -> FileNode:
        await services.database.value(_ADD_NODE, node=name)
        return FileNode(services.database, tmp_path, name)

    return add


async def test_key_in_the_file_of_one_node_is_known_to_the_others(add_node: Any, keys: Any, database: Database) -> None:
    one, two = await add_node("one"), await add_node("two")
    one.write(keys[0])
    assert not await two.trusts(keys[0])
    for _ in range(3):  # again and again
        await one.importing.import_changes()
        await two.importing.import_changes()
    assert await one.trusts(keys[0])
    assert await two.trusts(keys[0])
    assert await two.keys.has_file(APPLICATION)
    assert [key["id"] for key in await two.keys.published(APPLICATION)] == [key_id(keys[0].public_key())]
    (entry,) = await database.rows(_AUDIT)
    assert (entry["operation"], entry["operator"]) == ("application.key.add", "keys/40.pem on one")


async def test_key_is_valid_until_no_node_has_the_file(add_node: Any, keys: Any) -> None:
    one, two = await add_node("one"), await add_node("two")
    for node in (one, two):
        node.write(keys[0])
        await node.importing.import_changes()
    (one.folder / "40.pem").unlink()
    await one.importing.import_changes()
    await two.restart()
    assert await one.trusts(keys[0])
    (two.folder / "40.pem").unlink()
    await two.importing.import_changes()
    assert not await one.trusts(keys[0])
    assert not await two.trusts(keys[0])


async def test_replaced_file_replaces_the_key_on_all_nodes(add_node: Any, keys: Any) -> None:
    one, two = await add_node("one"), await add_node("two")
    one.write(keys[0])
    await one.importing.import_changes()
    one.write(keys[1])
    await one.importing.import_changes()
    for node in (one, two):
        assert (await node.trusts(keys[0]), await node.trusts(keys[1])) == (False, True)


async def test_conflicting_file_is_logged_and_not_imported(add_node: Any, keys: Any) -> None:
    one, two, three = [await add_node(name) for name in ("one", "two", "three")]
    one.write(keys[0])
    await one.importing.import_changes()
    two.write(keys[1])
    with structlog.testing.capture_logs() as logs:
        await two.importing.import_changes()
    (entry,) = logs
    assert entry == {
        "event": "perm.key_file_conflicted",
        "log_level": "error",
        "file": "keys/40.pem",
        "kid": key_id(keys[1].public_key()),
        "other_node": "one",
    }
    assert await three.trusts(keys[0])
    assert not await three.trusts(keys[1])


async def test_file_of_a_node_that_stopped_is_replaced(add_node: Any, keys: Any, database: Database) -> None:
    one, two = await add_node("one"), await add_node("two")
    one.write(keys[0])
    await one.importing.import_changes()
    await database.value(_STOP_NODE, node="one")
    assert await two.trusts(keys[0])  # until another file replaces it
    two.write(keys[1])
    await two.importing.import_changes()
    assert (await two.trusts(keys[0]), await two.trusts(keys[1])) == (False, True)


async def test_nodes_that_start_together_import_a_file_once(add_node: Any, keys: Any, database: Database) -> None:
    nodes = [await add_node(f"node{number}") for number in range(4)]
    for node in nodes:
        node.write(keys[0])
    async with trio.open_nursery() as nursery:
        for node in nodes:
            nursery.start_soon(node.importing.import_changes)
    assert len(await database.rows(_AUDIT)) == 1
    for node in nodes:
        assert await node.trusts(keys[0])


async def test_file_of_an_unknown_application_is_imported_when_it_exists(
    add_node: Any, keys: Any, database: Database
) -> None:
    one, two = await add_node("one"), await add_node("two")
    one.write(keys[0], application_id=41)
    await one.importing.import_changes()
    with pytest.raises(NotFound):
        await two.keys.published(41)
    await database.value(_ADD_APPLICATION, application_id=41)
    await one.restart()
    assert len(await two.keys.published(41)) == 1


async def test_key_of_a_node_that_is_gone_can_be_removed(add_node: Any, keys: Any, database: Database) -> None:
    one, two = await add_node("one"), await add_node("two")
    one.write(keys[0])
    await one.importing.import_changes()
    application = {"application_id": APPLICATION, "project_id": None}
    kid = key_id(keys[0].public_key())
    assert await database.transaction(delete_custom_key, AuditActor(operator="test"), application, kid)
    assert not await two.trusts(keys[0])
