"""A request during which another transaction deletes what it has read already."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx

from tests.kit.browser import query
from tests.kit.row_locks import changed_by_another_transaction
from tests.kit.server import Server, until

_WAITING = """SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE $1"""


def answer_while_deleting(
    server: Server, deletion: str, waiting: str, send: Callable[[], httpx.Response]
) -> httpx.Response:
    """Returns the response to a request whose statement ``waiting``, a LIKE pattern, waits for the deletion."""
    with ThreadPoolExecutor(1) as pool:
        with changed_by_another_transaction(server.settings["SSO_DATABASE_URL"], deletion):
            response = pool.submit(send)
            until(lambda: query(server, _WAITING, f"%{waiting}%")[0]["count"])
        return response.result()
