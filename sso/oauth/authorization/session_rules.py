"""Decides whether a browser session is enough for an authorization request. Pure: no clock, no store."""

from datetime import datetime, timedelta

from sso.accounts.authentication_context import ONE_FACTOR, SEVERAL_FACTORS, WITH_PASSKEY
from sso.accounts.model import User, login_key
from sso.accounts.session_store import Session
from sso.oauth.model import AuthorizationRequest, PendingAuthorization


def must_always_consent(request: AuthorizationRequest) -> bool:
    """Returns whether the user is asked, whatever an earlier consent was about."""
    # Users allow a third party to act for them at another service each time: a consent is only about scopes.
    acts_elsewhere = bool(request.client.registered_by and request.resources)
    return "consent" in request.prompts or asks_each_time(request) or acts_elsewhere


def asks_each_time(request: AuthorizationRequest) -> bool:
    """Returns whether an earlier consent does not count.

    Any program on the user's machine can listen on a port of its own and use the id of a public client, so nothing
    tells a first-party program, or one that registered itself, from another one (RFC 8252 section 8.6).
    """
    client = request.client
    is_program = client.first_party or bool(client.registered_by)
    return is_program and client.is_public and request.redirect.loopback_port is not None


def accepts(pending: PendingAuthorization, session: Session) -> bool:
    """Returns whether the session satisfies prompt=login, max_age and id_token_hint of the request.

    If not, the user must sign in again.
    """
    return _accepts_if_proven(pending, session) and _is_proof(pending, session)


def lacks_proof(pending: PendingAuthorization, session: Session) -> bool:
    """Returns whether the session would be accepted if its user had proved who they are."""
    return _accepts_if_proven(pending, session) and not _is_proof(pending, session)


def _accepts_if_proven(pending: PendingAuthorization, session: Session) -> bool:
    is_recent = pending.login_after is None or session.created >= pending.login_after
    return is_recent and is_requested_user(pending.request, session)


def _is_proof(pending: PendingAuthorization, session: Session) -> bool:
    return session.is_proven or not _needs_proof(pending)


def _needs_proof(pending: PendingAuthorization) -> bool:
    """Returns whether the client demands that the user signs in, and not only the user to use another account."""
    has_max_age = pending.login_after is not None and pending.login_after <= pending.created
    return has_max_age or "login" in pending.request.prompts


def is_requested_user(request: AuthorizationRequest, session: Session) -> bool:
    return request.sub in (None, session.user.user_id)


def satisfies(session: Session, request: AuthorizationRequest, now: datetime) -> bool:
    if "login" in request.prompts or not is_requested_user(request, session):
        return False
    if request.max_age is None:
        return True
    return session.is_proven and now - session.created <= timedelta(seconds=request.max_age)


def is_hinted_user(request: AuthorizationRequest, session: Session) -> bool:
    hint, user = request.login_hint, session.user
    is_ignored = not hint or not request.client.rules.is_standard
    return is_ignored or hint == user.user_id or login_key(hint) == user.login_key


def can_satisfy_acr(request: AuthorizationRequest, user: User) -> bool:
    """Returns whether the user can satisfy ``acr_values`` by signing in again with what the account has."""
    possible = {ONE_FACTOR}
    if user.second_factors:
        possible.add(SEVERAL_FACTORS)
    if user.passkey_count:
        possible.add(WITH_PASSKEY)
    return not possible.isdisjoint(request.acr_values)
