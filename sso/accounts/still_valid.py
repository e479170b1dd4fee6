"""Issuing something to users who were read a moment ago: nothing, if everything of theirs has ended since.

A lock makes whoever ends it wait until what is issued is there to be ended, and then find a later moment than ``now()``
here. Users are locked before anything of theirs, in the order of their ids, so that nobody waits in a circle.
"""

from typing import Any

from sso.db.batch import Batch
from sso.db.bridge import Database, Row
from sso.db.statement import Statement

NOW = "CAST(floor(extract(epoch FROM now())) AS bigint)"


class StillValid:
    """One operation. ``items`` have a ``user_id`` and a ``valid_from``, ``issue`` goes on with the ``still_valid``.

    A user who is being changed this very moment is waited for apart: the change may be part of a long one, and others
    of the batch have nothing to do with it.
    """

    def __init__(self, database: Database, items: str, issue: str) -> None:
        self._at_once = Batch(database, _statement(items, "SKIP LOCKED", issue))
        self._patiently = Batch(database, _statement(items, "", issue))

    async def __call__(self, *arguments: Any) -> Row | None:
        """None if the user is not valid any more: then nothing has happened."""
        row = await self._at_once(*arguments)
        return await self._patiently(*arguments) if row is None else row


def _statement(items: str, if_locked: str, issue: str) -> Statement:
    return Statement(
        f"""WITH item AS ({items}), person AS (
            SELECT user_id, valid_from FROM users WHERE user_id IN (SELECT user_id FROM item) AND NOT disabled
            ORDER BY user_id FOR SHARE {if_locked}
        ), still_valid AS (
            SELECT item.* FROM item JOIN person USING (user_id, valid_from)
        ) {issue}"""  # noqa: S608 - the parts are ours
    )
