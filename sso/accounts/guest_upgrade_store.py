"""A guest becomes an account in the database: the same user gets a login and a password."""

from msgspec import Struct

from sso.accounts.model import GUEST_TAG, User, login_key, stored_login
from sso.accounts.user_store import lock_user
from sso.audit import trail
from sso.audit.trail import AuditActor
from sso.change_stream.events import Change, ChangeType, record_changes
from sso.db.statement import Statement
from sso.db.transaction import Runner, Transaction

# The ways in which the guest signs in are as new as the address: a reset of the password does not remove them.
_UPGRADE = Statement(
    f"""WITH keys AS (
        UPDATE device_keys SET of_guest = false, created = now() WHERE user_id = :user_id
    ), store_accounts AS (
        UPDATE linked_identities SET created = now() WHERE user_id = :user_id
    )
    UPDATE users SET login = :login, login_key = :login_key, password_hash = :password_hash, nick = :nick,
        lang = :lang, email_verified = true, tags = array_remove(tags, '{GUEST_TAG}'),
        terms_version = coalesce(CAST(:accepted_terms AS text), ''),
        terms_accepted = CASE WHEN CAST(:accepted_terms AS text) IS NOT NULL THEN now() END
    WHERE user_id = :user_id RETURNING *"""
)
# The game's session must still wait for this guest, and be newer than the last revocation of the guest: the JWT with
# which an older one was started is void. It ends with the sign-in of that JWT, see `token_holder.IS_SIGNED_IN`.
_IS_OPEN = """gsid = :gsid AND link_guest = :user_id AND linked IS NULL AND status = 'pending' AND ends > now()
        AND created >= to_timestamp((SELECT valid_from FROM users WHERE user_id = :user_id))
        AND coalesce((SELECT NOT i.ended FROM sign_ins i WHERE i.id = link_sign_in), link_sign_in IS NULL)"""
_FIND_SESSION = Statement(f"SELECT gsid FROM game_sessions WHERE {_IS_OPEN}")
_MARK_SESSION = Statement(f"UPDATE game_sessions SET linked = :linked WHERE {_IS_OPEN} RETURNING gsid")


class GuestLink(Struct, frozen=True):
    """A game's session that links a guest to the account with which its page is left."""

    gsid: str
    guest_id: str

    async def is_open(self, runner: Runner) -> bool:
        """Returns False if the session has ended or linked the guest, or the guest or the sign-in was revoked since."""
        return await runner.value(_FIND_SESSION, gsid=self.gsid, user_id=self.guest_id) is not None

    async def mark(self, tx: Transaction, linked: str) -> bool:
        """Stores what became of the guest, whom the caller has locked. Returns False for a reason of `is_open`."""
        gsid = await tx.value(_MARK_SESSION, gsid=self.gsid, user_id=self.guest_id, linked=linked)
        return gsid is not None


async def upgrade_guest(
    tx: Transaction,
    link: GuestLink,
    login: str,
    password_hash: str | None,
    nick: str,
    lang: str,
    accepted_terms: str | None,
) -> User | None:
    """Returns the user, who keeps the id; None if the user is no guest any more, or for a reason of `GuestLink.mark`.

    Raises UniqueViolation if the login is taken.
    """
    guest = await lock_user(tx, link.guest_id)
    if guest is None or not guest.is_guest or guest.disabled or not await link.mark(tx, "upgraded"):
        return None
    row = await tx.row(
        _UPGRADE,
        user_id=link.guest_id,
        login=stored_login(login),
        login_key=login_key(login),
        password_hash=password_hash,
        nick=nick,
        lang=lang,
        accepted_terms=accepted_terms,
    )
    user = User.from_row(row)
    actor, before, after = AuditActor(user_id=user.user_id), {"guest": True}, {"login": user.login, "guest": False}
    await trail.write(tx, actor, "user.upgrade", user.user_id, before, after)
    await record_changes(tx, [Change(ChangeType.USER_UPGRADED, user.user_id)])
    return user
