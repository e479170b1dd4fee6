"""The errors of a device's token request (RFC 8628 section 3.5)."""

from sso.core.errors import ApiError


class AuthorizationPending(ApiError):
    code = "authorization_pending"
    message = "the user has not confirmed yet"


class SlowDown(ApiError):
    code = "slow_down"
    message = "wait 5 seconds longer between requests from now on, or hold them with the parameter wait"


class AccessDenied(ApiError):
    code = "access_denied"
    message = "the user has refused, or may not sign in"


class DeviceCodeExpired(ApiError):
    code = "expired_token"
    message = "device_code: has expired, request a new one"
