"""A client with many users is disabled and deleted, and its leaked secret ends, although that takes long."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from sso.oauth.clients.revocation_store import MAX_USUAL_USERS
from tests.admin.conftest import Administrator, root, studio
from tests.kit.browser import query, user_id_of
from tests.kit.oauth import Site, new_browser, new_site
from tests.kit.row_locks import locked_by_another_transaction
from tests.kit.server import Server, until

__all__ = ["root", "studio"]

Change = Callable[[Administrator, str], httpx.Response]

ADD_GRANTS = """WITH grants AS (
        INSERT INTO oauth_grants (id, client_id, user_id, redirect_uri, auth_time, issued, ends, last_used, expires)
        SELECT $1 || n, $1, $2, $3, 1, 1, 4000000000, now(), now() + interval '1 day'
        FROM generate_series(CAST($4 AS int), 1, -1) n RETURNING id
    )
    INSERT INTO oauth_access_tokens (digest, grant_id, expires)
    SELECT sha256(CAST(id AS bytea)), id, now() + interval '1 day' FROM grants"""
COUNT = "SELECT count(*) FROM oauth_grants WHERE client_id = $1"
WAITING = """SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
    AND wait_event_type = 'Lock' AND query LIKE '%DELETE FROM oauth_grants%'"""


def new_client(server: Server, grants: int) -> Site:
    """Returns a client with so many grants of a user, the later ones stored first."""
    site = new_site(server, redirect_hosts=["game.example.com"])
    user_id = user_id_of(server, new_browser(server).login)
    query(server, ADD_GRANTS, site.client_id, user_id, site.redirect_uri, grants)
    return site


@contextmanager
def slow_deletion(server: Server, client_id: str) -> Iterator[None]:
    """The grants are deleted only by a statement that may take minutes."""
    query(
        server,
        """CREATE FUNCTION takes_minutes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF CAST(current_setting('statement_timeout') AS interval) < interval '5 minutes' THEN
                RAISE EXCEPTION 'canceling statement due to statement timeout' USING ERRCODE = '57014';
            END IF;
            RETURN OLD;
        END $$""",
    )
    query(
        server,
        f"""CREATE TRIGGER takes_minutes BEFORE DELETE ON oauth_grants FOR EACH ROW
        WHEN (OLD.client_id = '{client_id}') EXECUTE FUNCTION takes_minutes()""",
    )
    try:
        yield
    finally:
        query(server, "DROP FUNCTION takes_minutes CASCADE")


def change(fields: dict[str, Any]) -> Change:
    return lambda root, client_id: root.request("PATCH", f"/clients/{client_id}", json=fields)


def delete(root: Administrator, client_id: str) -> httpx.Response:
    return root.request("DELETE", f"/clients/{client_id}")


def end_leaked_secret(root: Administrator, client_id: str) -> httpx.Response:
    return root.request("POST", f"/clients/{client_id}/rotate-secret", json={"overlap": 0})


@pytest.mark.parametrize(
    "send",
    [change({"disabled": True}), change({"redirect_hosts": ["shop.example.com"]}), delete, end_leaked_secret],
    ids=["disable", "remove_redirect_uri", "delete", "end_leaked_secret"],
)
def test_everything_that_many_users_granted_ends(server: Server, root: Administrator, send: Change) -> None:
    site = new_client(server, MAX_USUAL_USERS + 1)
    with slow_deletion(server, site.client_id):
        answer = send(root, site.client_id)
    assert answer.status_code == 200, answer.text
    assert query(server, COUNT, site.client_id)[0]["count"] == 0


def test_grants_are_revoked_in_the_order_in_which_they_are_locked(server: Server, root: Administrator) -> None:
    """A concurrent refresh of several grants locks them by their ids, so that no deadlock is possible."""
    site = new_client(server, 2)
    first, second = (
        f"SELECT FROM oauth_grants WHERE id = '{site.client_id}{number}' FOR UPDATE NOWAIT" for number in (1, 2)
    )
    with ThreadPoolExecutor(1) as pool:
        with locked_by_another_transaction(server.settings["SSO_DATABASE_URL"], first):
            answer = pool.submit(delete, root, site.client_id)
            until(lambda: query(server, WAITING)[0]["count"])
            query(server, second)
        assert answer.result().status_code == 200
