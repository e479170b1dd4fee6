"""Single-use links that are sent by mail."""

from urllib.parse import parse_qs, urlsplit

import trio

from sso.accounts.mailed_link_store import MailedLink, MailedLinks
from sso.db.database import Database
from sso.db.statement import Statement

BASE_URL = "https://sso.example.com"
_EXPIRE = Statement("UPDATE mailed_links SET expires = now() - interval '1 second'")


async def create_link(links: MailedLinks, database: Database, purpose: str = "reset") -> str:
    """Creates a link and returns its secret."""
    url = await database.transaction(lambda tx: links.create(tx, purpose, "/reset", 60, address="ann@example.com"))
    assert url.startswith(f"{BASE_URL}/reset?token=")
    return parse_qs(urlsplit(url).query)["token"][0]


async def test_link_works_once(database: Database) -> None:
    links = MailedLinks(database, BASE_URL)
    secret = await create_link(links, database)
    found = await links.find("reset", secret)
    assert found
    assert (found.user_id, found.data) == (None, {"address": "ann@example.com"})
    assert await database.transaction(lambda tx: links.use(tx, "reset", secret)) == found
    assert await links.find("reset", secret) is None
    assert await database.transaction(lambda tx: links.use(tx, "reset", secret)) is None


async def test_link_is_bound_to_its_purpose(database: Database) -> None:
    links = MailedLinks(database, BASE_URL)
    secret = await create_link(links, database)
    assert await links.find("verify", secret) is None
    assert await database.transaction(lambda tx: links.use(tx, "verify", secret)) is None
    assert await links.find("reset", secret)


async def test_link_expires(database: Database) -> None:
    links = MailedLinks(database, BASE_URL)
    secret = await create_link(links, database)
    await database.value(_EXPIRE)
    assert await links.find("reset", secret) is None
    assert await database.transaction(lambda tx: links.use(tx, "reset", secret)) is None


async def test_new_link_leaves_earlier_ones_valid(database: Database) -> None:
    links = MailedLinks(database, BASE_URL)
    first = await create_link(links, database)
    await create_link(links, database)
    assert await links.find("reset", first)


async def test_one_of_fifty_concurrent_uses_gets_the_link(database: Database) -> None:
    links = MailedLinks(database, BASE_URL)
    secret = await create_link(links, database)
    results: list[MailedLink | None] = []

    async def use() -> None:
        results.append(await database.transaction(lambda tx: links.use(tx, "reset", secret)))

    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(use)
    assert len([link for link in results if link]) == 1
