"""The events of webhooks, each with what has happened, for the form of a webhook."""

from collections.abc import Mapping

from sso.change_stream.events import ChangeType
from sso.webhooks.event_filter import ALL

# The names that select several events, then the events.
GROUP_TEXTS: Mapping[str, str] = {
    ALL: "All events, also those of later versions.",
    "permissions": "Both events about permissions.",
    "users": "All events about users.",
    "keys": "All events about keys and secrets.",
}
EVENT_TEXTS: Mapping[str, str] = {
    ChangeType.PERMISSIONS_CHANGED: "A user has gained or lost rules of an application.",
    ChangeType.APPLICATION_CHANGED: "So many users of an application have, that they are not listed.",
    ChangeType.USER_DISABLED: "A user can no longer sign in.",
    ChangeType.USER_ENABLED: "A disabled user can sign in again.",
    ChangeType.USER_DELETED: "An account was closed, and will be erased.",
    ChangeType.USER_RESTORED: "A closed account is kept after all.",
    ChangeType.USER_ERASED: "A closed account no longer exists.",
    ChangeType.KEY_ROTATED: "The service has a new key that signs tokens.",
    ChangeType.KEY_RETIRED: "Tokens that a key has signed are no longer accepted.",
    ChangeType.APPLICATION_KEY_ADDED: "An application has a new public key, with which its requests are verified.",
    ChangeType.APPLICATION_KEY_REMOVED: "A public key of an application was removed.",
    ChangeType.ACCESS_KEY_CREATED: "An application has a new access key.",
    ChangeType.ACCESS_KEY_DELETED: "An access key of an application no longer works.",
    ChangeType.CLIENT_SECRET_ROTATED: "An OAuth client has a new secret.",
}
ALL_TEXTS: Mapping[str, str] = {**GROUP_TEXTS, **EVENT_TEXTS}
