"""What a client may use once: pushed authorization requests, and the ids of its assertions and DPoP proofs."""

from sso.core.ids import digest
from sso.db.statement import Statement
from sso.db.transaction import Runner

_SAVE_REQUEST = Statement(
    """INSERT INTO oauth_pushed_requests (digest, client_id, query, expires)
    SELECT :digest, client_id, :query, now() + make_interval(secs => :lifetime_s)
    FROM oauth_clients WHERE client_id = :client_id RETURNING digest"""
)
# Of several requests with the same request URI, the one that deletes the row wins.
_USE_REQUEST = Statement(
    """DELETE FROM oauth_pushed_requests
    WHERE digest = :digest AND client_id = :client_id AND expires > now() RETURNING query"""
)
# Of several requests with the same assertion or proof, the one that inserts the row wins.
_USE_JTI = Statement(
    """INSERT INTO oauth_used_jtis (digest, expires) VALUES (:digest, to_timestamp(:expires))
    ON CONFLICT DO NOTHING RETURNING digest"""
)


async def save_pushed_request(runner: Runner, secret: str, client_id: str, query: bytes, lifetime_s: int) -> bool:
    """Returns False if the client does not exist."""
    values = {"digest": digest(secret), "client_id": client_id, "query": query, "lifetime_s": float(lifetime_s)}
    return await runner.value(_SAVE_REQUEST, **values) is not None


async def use_pushed_request(runner: Runner, secret: str, client_id: str) -> bytes | None:
    """Returns the query that the client pushed, or None if it was used, has expired, or belongs to another client."""
    query: bytes | None = await runner.value(_USE_REQUEST, digest=digest(secret), client_id=client_id)
    return query


async def use_jti(runner: Runner, jti: str, expires: float) -> bool:
    """Returns False if the id was used before, by a request to any worker. ``jti`` also names who uses it."""
    return await runner.value(_USE_JTI, digest=digest(jti), expires=expires) is not None
