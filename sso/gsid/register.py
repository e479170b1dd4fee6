"""getGsid: register a session (§4.3)."""

import uuid
from dataclasses import dataclass, field

from sso.accounts.model import LoginOptions
from sso.core.ids import secret_token
from sso.core.keys import UnusableKey, load_rsa_public, public_der
from sso.core.refused import Refused
from sso.gsid.match import match_code
from sso.gsid.store import GameSessions


@dataclass(frozen=True)
class Registered:
    gsid: str
    started: int
    expires_in: int
    match: str
    secret: str = field(repr=False)


class Register:
    def __init__(self, sessions: GameSessions) -> None:
        self._sessions = sessions

    async def register(self, options: LoginOptions, public_keys: tuple[str, ...]) -> Registered:
        gsid, secret, match = str(uuid.uuid4()), secret_token(), match_code()
        started, life = await self._sessions.create(gsid, secret, match, public_key(public_keys), options)
        return Registered(gsid, started, life, match, secret)


def public_key(texts: tuple[str, ...]) -> bytes | None:
    """The one key, which may be said in the body and in the header."""
    try:
        keys = {public_der(load_rsa_public(text)) for text in texts}
    except UnusableKey as error:
        raise Refused(f"public_key: {error}") from None
    if len(keys) > 1:
        raise Refused("public_key: differs from the header Public-Key")
    return next(iter(keys), None)
