"""The authentication data of §2.2, for every kind of login."""

from typing import Any

from sso.accounts.model import LoginOptions, SignedIn
from sso.accounts.ports import ApplicationDirectory
from sso.accounts.session_tokens import IssuedSessionTokens, SessionTokens, TokenSource
from sso.accounts.user_jwt import UserJwts


class AuthenticationDataIssuer:
    def __init__(self, tokens: SessionTokens, jwts: UserJwts, applications: ApplicationDirectory, vendor: str) -> None:
        self._tokens = tokens
        self._jwts = jwts
        self._applications = applications
        self._vendor = vendor

    async def issue(
        self, signed_in: SignedIn, options: LoginOptions, source: TokenSource | None = None, sign_in_id: str = ""
    ) -> dict[str, Any]:
        """Issues tokens to an authenticated user. ``source`` is the session token that was used for it, if any.

        ``sign_in_id`` is the id of the new sign-in if the caller has chosen one. Raises InvalidCredentials if it exists
        already.
        """
        user = signed_in.user
        if source:
            options = source.narrow(options)
        # Raises LoginNotAllowed before any token is issued.
        permissions = await self._applications.permissions(user, options.address, options.application_ids)
        issued = await self._tokens.issue(user, signed_in.authentication, options, source, sign_in_id)
        return self.render(signed_in, options, issued, permissions)

    def render(
        self,
        signed_in: SignedIn,
        options: LoginOptions,
        issued: IssuedSessionTokens,
        permissions: dict[str, list[str]],
    ) -> dict[str, Any]:
        """Returns the data of a user who has got these tokens."""
        user = signed_in.user
        data: dict[str, Any] = {
            "status": "OK",
            "user_id": user.user_id,
            "auth": signed_in.auth,
            "nick": user.nick,
            f"{self._vendor}_nick": user.nick,
            "country": user.country,
            "lang": user.lang,
            "level": user.level,
            "reg_time": str(int(user.reg_time.timestamp())),
            "tags": ",".join(user.tags),
            "token": issued.token,
            "stoken": issued.stoken,
            "token_exp": issued.token_exp,
        }
        if user.is_guest:
            data["guest"] = True
        if options.application_ids:
            data["permissions"] = permissions
        if options.meta:
            data["meta"] = user.meta
        if options.with_email:
            data["login"] = user.login
        if options.factor and not options.nojwt:
            app_id = options.app_id or options.gapp_id
            data["jwt"] = self._jwts.issue(
                user, options, signed_in.auth, app_id, validated_at=issued.validated_at, inherited=issued.inherited
            )
        return data
