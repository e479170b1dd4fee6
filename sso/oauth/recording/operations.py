"""Turns the recording of a client's requests on and off. The caller has locked the client."""

from datetime import datetime

from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.core.moments import rfc3339
from sso.db.transaction import Transaction
from sso.oauth.recording.recorder import TOPIC
from sso.oauth.recording.store import start_recording, stop_recording


async def start(tx: Transaction, actor: AuditActor, client_id: str) -> datetime:
    """Records the client for an hour from now. Returns the end."""
    end = await start_recording(tx, client_id)
    await trail.write(tx, actor, "client.start_recording", client_id, None, {"recorded_until": rfc3339(end)})
    tx.publish_after_commit(TOPIC)
    return end


async def stop(tx: Transaction, actor: AuditActor, client_id: str) -> None:
    """What was recorded stays until its hour is over."""
    if await stop_recording(tx, client_id):
        await trail.write(tx, actor, "client.stop_recording", client_id, {"recorded": True}, {"recorded": False})
        tx.publish_after_commit(TOPIC)
