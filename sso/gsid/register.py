"""getGsid: register a session (§4.3)."""

import uuid
from dataclasses import dataclass, field

from sso.accounts.model import LoginOptions
from sso.core.errors import ApiError
from sso.core.ids import secret_token
from sso.core.keys import UnusableKey, load_rsa_public, public_der
from sso.gsid.match_code import match_code
from sso.gsid.session_store import GameSessionStore


@dataclass(frozen=True)
class RegisteredSession:
    gsid: str
    started: int
    expires_in: int
    match: str
    secret: str = field(repr=False)


class Registration:
    def __init__(self, sessions: GameSessionStore) -> None:
        self._sessions = sessions

    async def register(self, options: LoginOptions, key_text: str | None) -> RegisteredSession:
        gsid, secret, match = str(uuid.uuid4()), secret_token(), match_code()
        started, life = await self._sessions.create(gsid, secret, match, _read_key(key_text), options)
        return RegisteredSession(gsid, started, life, match, secret)


def _read_key(text: str | None) -> bytes | None:
    try:
        return public_der(load_rsa_public(text)) if text is not None else None
    except UnusableKey as error:
        raise ApiError(f"public_key: {error}") from None
