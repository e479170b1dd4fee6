"""What administrators do about requests to games."""

from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.core.errors import Conflict, NotFound
from sso.db.transaction import Transaction
from sso.personal_data.games.model import DataRequest
from sso.personal_data.games.request_store import lock_request, retry_request


async def retry(tx: Transaction, actor: AuditActor, number: int) -> DataRequest:
    """Sends a request again that has failed, or waits for its next attempt. Its time to succeed begins anew."""
    before = await lock_request(tx, number)
    if before is None:
        raise NotFound("data request not found")
    if not await retry_request(tx, number):
        raise Conflict("the request is finished, on its way, or waits for the game to send the data")
    after = await lock_request(tx, number)
    assert after is not None
    await trail.write(
        tx,
        actor,
        "user.data_request_retry",
        before.subject_id,
        {"state": before.state, "problem": before.problem},
        {"state": after.state, "kind": after.kind},
        application_id=after.application_id,
    )
    return after
