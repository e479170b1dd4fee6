"""Errors of permission requests."""

from sso.accounts.authentication_context import SEVERAL_FACTORS
from sso.core.errors import ApiError, Forbidden, RetryLater


class PermissionConflict(ApiError):
    """The input is valid but conflicts with stored data."""

    status = 409
    message = "conflict"


class UserWasMerged(PermissionConflict):
    """The user was merged into another one, and only the data of that user is read."""

    message = "user_id: the user was merged into another one; save the data of that user"


class TooManyAdminRequests(RetryLater):
    """The caller has sent more requests to manage permissions or other records than SSO_RATE_ADMIN allows."""

    status = 429
    message = "too many requests, try again later"


class TooManyLargeSaves(RetryLater):
    """The caller has saved large own data too often: every version of them is kept for as long as the audit trail."""

    status = 429
    message = "too many saves of large own data, try again later"


class InsufficientAuthentication(Forbidden):
    """The caller's sign-in was without a second factor. The header says what to ask for (RFC 9470)."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.headers = {
            "WWW-Authenticate": f'Bearer error="insufficient_user_authentication", acr_values="{SEVERAL_FACTORS}"'
        }
