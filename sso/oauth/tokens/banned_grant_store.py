"""A ban of an application or a project ends the codes and tokens that its user has given to the clients there.

After a ban of scope "all", ``users.valid_from`` makes all tokens of the user void.
"""

from collections.abc import Sequence

from sso.backchannel_logout.store import end_site_sessions
from sso.core.ban import Ban
from sso.db.statement import Statement
from sso.db.transaction import Transaction

_CLIENTS = Statement("SELECT client_id FROM oauth_clients WHERE application_id = ANY (CAST(:applications AS int[]))")
# Codes and grants stay, without effect, so that the client can be told why. A redemption or a rotation in progress
# waits for these rows or is waited for: its tokens end with the grant.
_END_CODES = Statement(
    """UPDATE oauth_codes SET issued = -1 WHERE digest IN (
        SELECT digest FROM oauth_codes WHERE user_id = :user_id AND redeemed IS NULL
            AND (CAST(:clients AS text[]) IS NULL OR client_id = ANY (CAST(:clients AS text[])))
        ORDER BY digest FOR UPDATE
    )"""
)
_END = tuple(
    Statement(text)
    for text in (
        """UPDATE oauth_grants SET ends = least(ends, CAST(floor(extract(epoch FROM now())) AS bigint)) WHERE id IN (
            SELECT id FROM oauth_grants WHERE user_id = :user_id AND client_id = ANY (CAST(:clients AS text[]))
            ORDER BY id FOR UPDATE
        )""",
        """DELETE FROM oauth_access_tokens WHERE grant_id IN (
            SELECT id FROM oauth_grants WHERE user_id = :user_id AND client_id = ANY (CAST(:clients AS text[]))
        )""",
    )
)


class BannedGrants:
    """Implements `sso.accounts.bans.operations.BanEnding`."""

    async def end(self, tx: Transaction, user_id: str, ban: Ban, applications: Sequence[int] | None) -> None:
        if applications is None:
            await tx.value(_END_CODES, user_id=user_id, clients=None)
            return
        clients = [row["client_id"] for row in await tx.rows(_CLIENTS, applications=list(applications))]
        if not clients:
            return
        for statement in (_END_CODES, *_END):
            await tx.value(statement, user_id=user_id, clients=clients)
        for client_id in clients:
            await end_site_sessions(tx, user_id, client_id=client_id, keeps_codes=True)
