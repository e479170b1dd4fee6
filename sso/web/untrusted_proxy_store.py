"""Stores the peers whose forwarding headers were ignored, for ``sso doctor``."""

import structlog

from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.db.statement import Statement

log = structlog.get_logger()

# All workers together report a peer at most once per minute.
_RECORD = Statement(
    """
    INSERT INTO untrusted_proxies AS existing (peer, header, last_seen, expires)
    VALUES (:peer, :header, now(), now() + interval '1 day')
    ON CONFLICT (peer) DO UPDATE
        SET (header, last_seen, expires) = (excluded.header, excluded.last_seen, excluded.expires)
        WHERE existing.last_seen < now() - interval '55 s'
    RETURNING true
    """
)


async def record_untrusted_proxy(database: Database, peer: str, header: str) -> bool:
    """Stores a report. Returns False if another worker has just stored one for this peer."""
    try:
        return bool(await database.value(_RECORD, peer=peer, header=header))
    except DatabaseError as error:
        log.warning("proxy.report_failed", reason=str(error))
        return True
