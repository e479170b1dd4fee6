"""Issuing something to users who were read a moment ago: nothing, if everything of theirs has ended since.

A lock makes whoever ends it wait until what is issued is there to be ended, and then find a later moment than ``now()``
here. Users are locked before anything of theirs, in the order of their ids, so that nobody waits in a circle.
"""

from sso.db.batch.skip_locked import SkipLockedBatch
from sso.db.database import Database

NOW = "CAST(floor(extract(epoch FROM now())) AS bigint)"


def guarded_by_user(database: Database, items: str, issue: str) -> SkipLockedBatch:
    """One operation. ``items`` have a ``user_id`` and a ``valid_from``, ``issue`` goes on with the ``still_valid``.

    No row: the user is not valid any more, and nothing has happened.
    """

    statement = f"""WITH item AS ({items}), person AS (
            SELECT user_id, valid_from FROM users WHERE user_id = ANY (ARRAY(SELECT user_id FROM item))
                AND NOT disabled ORDER BY user_id FOR SHARE {{if_locked}}
        ), still_valid AS (
            SELECT item.* FROM item JOIN person USING (user_id, valid_from)
        ) {issue}"""  # noqa: S608 - the parts are ours
    return SkipLockedBatch(database, statement)
