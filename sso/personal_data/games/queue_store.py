"""Requests to games in the database, as the senders see them.

Each claim counts a try, and a statement of an earlier claim changes nothing: a worker whose lease has ended cannot
overwrite what another one has stored.
"""

from sso.core.encryption import Keyring, column_purpose
from sso.core.ids import digest, secret_token
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Runner, Transaction
from sso.delivery.due_queue import LEASE_S
from sso.personal_data.games.model import KEPT_DAYS, MAX_EXPORT, ClaimedRequest

# Each attempt has a link of its own, so that the database needs to store only its digest.
_CLAIM = Statement(
    """UPDATE data_requests r SET tries = r.tries + 1, next_try = now() + make_interval(secs => :lease_s),
        link_digest = CASE r.state WHEN 'pending' THEN CAST(:link_digest AS bytea) END
    FROM applications a WHERE a.application_id = r.application_id AND r.id = (
        SELECT id FROM data_requests
        WHERE next_try <= now() AND (kind = 'remove') = :is_removal
            AND (expires IS NULL OR expires > now()) AND CAST(application_id AS text) <> ALL (CAST(:busy AS text[]))
        ORDER BY next_try LIMIT 1 FOR UPDATE SKIP LOCKED
    )
    RETURNING r.id, r.request_id, r.kind, r.subject_id, r.application_id, r.url, r.accepted, r.state, r.tries,
        r.deadline, a.project_id, a.settings -> 'gdpr' AS gdpr, a.data_secret_sealed AS secret_sealed"""
)
_IS_CLAIMED = "id = :id AND tries = :tries AND state IN ('pending', 'waiting')"
_SECRET = Statement(
    """UPDATE applications SET data_secret_sealed = coalesce(data_secret_sealed, :sealed)
    WHERE application_id = :application_id RETURNING data_secret_sealed"""
)
_WAIT = Statement(f"UPDATE data_requests SET state = 'waiting', next_try = deadline, problem = '' WHERE {_IS_CLAIMED}")
_RENEW = Statement(
    f"""UPDATE data_requests SET accepted = accepted || CAST(:accepted AS text[]),
        next_try = now() + make_interval(secs => :lease_s)
    WHERE {_IS_CLAIMED} RETURNING id"""
)
_FINISH_REMOVAL = Statement(
    f"""UPDATE data_requests SET state = 'done', next_try = NULL, problem = '', finished = now(),
        expires = now() + interval '{KEPT_DAYS} days'
    WHERE {_IS_CLAIMED} RETURNING id"""
)
# Without a pause, the request has failed. The answers of an export expire with it.
_FAIL = Statement(
    f"""UPDATE data_requests SET problem = :problem, next_try = now() + make_interval(secs => :pause_s),
        state = CASE WHEN CAST(:pause_s AS float) IS NULL THEN 'failed' ELSE state END,
        link_digest = CASE WHEN CAST(:pause_s AS float) IS NULL THEN NULL ELSE link_digest END,
        finished = CASE WHEN CAST(:pause_s AS float) IS NULL THEN now() END,
        expires = CASE WHEN CAST(:pause_s AS float) IS NULL AND kind = 'remove'
            THEN now() + interval '{KEPT_DAYS} days' ELSE expires END
    WHERE {_IS_CLAIMED} RETURNING id"""
)
_IS_JSON = Statement("SELECT is_json_document(:document)")
_LINK_IS_OPEN = "link_digest = :digest AND state IN ('pending', 'waiting') AND deadline > now() AND expires > now()"
_FIND_LINK = Statement(f"SELECT id FROM data_requests WHERE {_LINK_IS_OPEN}")
_STORE_ANSWER = """UPDATE data_requests r SET state = 'done', next_try = NULL, problem = '', link_digest = NULL,
        finished = now(), content = :content, size = :size,
        characters = CASE r.kind WHEN 'characters' THEN CAST(:characters AS text[]) ELSE r.characters END
    WHERE {which} AND :size + (SELECT coalesce(sum(o.size), 0) FROM data_requests o WHERE o.export_id = r.export_id)
        <= {max_export} RETURNING id"""
_STORE_ATTEMPT = Statement(_STORE_ANSWER.format(which=_IS_CLAIMED, max_export=MAX_EXPORT))
_STORE_LINK = Statement(_STORE_ANSWER.format(which=_LINK_IS_OPEN, max_export=MAX_EXPORT))


class DataQueue:
    def __init__(self, database: Database, keyring: Keyring) -> None:
        self._database = database
        self._keyring = keyring

    async def claim(self, busy: list[str], *, is_removal: bool) -> tuple[ClaimedRequest, str] | None:
        """Returns a request that is due, for an application that is not in ``busy``, and the link that it may call."""
        link = secret_token()
        row = await self._database.row(
            _CLAIM, lease_s=LEASE_S, busy=busy, is_removal=is_removal, link_digest=digest(link)
        )
        return None if row is None else (ClaimedRequest.from_row(row), link)

    async def secret(self, request: ClaimedRequest) -> str:
        return await data_secret(self._database, self._keyring, request.application_id, request.secret_sealed)

    async def wait(self, request: ClaimedRequest) -> None:
        """Waits until the game calls the link. Does nothing if it has called it meanwhile."""
        await self._database.value(_WAIT, id=request.id, tries=request.tries)

    async def renew(self, request: ClaimedRequest, *accepted: str) -> bool:
        """Stores the address that has accepted a removal, and renews the lease. Returns False if it was lost."""
        values = {"accepted": list(accepted), "lease_s": LEASE_S}
        return await self._database.value(_RENEW, id=request.id, tries=request.tries, **values) is not None

    async def store_answer(self, request: ClaimedRequest, content: str, characters: list[str]) -> bool:
        """Returns False if the export would become too large, or the game has called the link meanwhile."""
        return await _store(self._database, _STORE_ATTEMPT, content, characters, id=request.id, tries=request.tries)

    async def is_json(self, document: str) -> bool:
        """PostgreSQL parses the document: it may be large, and deeply nested."""
        return bool(await self._database.value(_IS_JSON, document=document))

    async def is_open_link(self, link: str) -> bool:
        return await self._database.value(_FIND_LINK, digest=digest(link)) is not None

    async def store_called(self, link: str, content: str, characters: list[str]) -> bool:
        """Stores what a game has sent to its link. Of several concurrent calls, one returns True."""
        return await _store(self._database, _STORE_LINK, content, characters, digest=digest(link))


async def finish_removal(tx: Transaction, request: ClaimedRequest) -> bool:
    """Returns False if another worker has the request now."""
    return await tx.value(_FINISH_REMOVAL, id=request.id, tries=request.tries) is not None


async def store_failure(tx: Runner, request: ClaimedRequest, problem: str, pause_s: float | None) -> bool:
    """Returns False if another worker has the request now, or the game has called its link."""
    values = {"problem": problem, "pause_s": pause_s}
    return await tx.value(_FAIL, id=request.id, tries=request.tries, **values) is not None


async def data_secret(runner: Runner, keyring: Keyring, application_id: int, sealed: str | None = None) -> str:
    """Returns the secret that signs requests to the application. It is created if there is none."""
    purpose = column_purpose("applications.data_secret_sealed", application_id)
    if sealed is None:
        new = keyring.encrypt(purpose, secret_token())
        sealed = await runner.value(_SECRET, application_id=application_id, sealed=new)
    return keyring.decrypt(purpose, str(sealed))


async def _store(runner: Runner, statement: Statement, content: str, characters: list[str], **which: object) -> bool:
    values = {"content": content, "size": len(content.encode()), "characters": characters}
    return await runner.value(statement, **values, **which) is not None
