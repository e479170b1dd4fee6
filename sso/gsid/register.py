"""getGsid: registers a session (§4.3)."""

import uuid

from sso.accounts.model import LoginOptions
from sso.core.field_errors import FieldError
from sso.core.hidden_fields import RecordWithHiddenFields
from sso.core.ids import secret_token
from sso.core.keys import UnusableKey, load_rsa_public, public_der
from sso.gsid.match_code import new_match_code
from sso.gsid.session_store import GameSessionStore
from sso.telemetry.login_funnel import LOGIN_FUNNEL


class RegisteredSession(RecordWithHiddenFields, frozen=True):
    hidden_fields = frozenset({"secret"})

    gsid: str
    started: int
    expires_in: int
    match: str
    secret: str


class Registration:
    def __init__(self, sessions: GameSessionStore) -> None:
        self._sessions = sessions

    async def register(
        self,
        options: LoginOptions,
        key_text: str | None,
        link_guest: str | None = None,
        link_sign_in: str | None = None,
    ) -> RegisteredSession:
        """Raises ApiError if the public key is unusable.

        ``link_guest`` is the guest to link to the account, ``link_sign_in`` the sign-in of the guest that asks for it.
        """
        gsid, secret, match = str(uuid.uuid4()), secret_token(), new_match_code()
        started, lifetime_s = await self._sessions.create(
            gsid, secret, match, _parse_key(key_text), options, link_guest, link_sign_in
        )
        LOGIN_FUNNEL.add("registered", options.application_ids, options.distr)
        return RegisteredSession(gsid, started, lifetime_s, match, secret)


def _parse_key(text: str | None) -> bytes | None:
    try:
        return public_der(load_rsa_public(text)) if text is not None else None
    except UnusableKey as error:
        raise FieldError(("public_key",), str(error)) from None
