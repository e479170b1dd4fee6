"""What the console says after an action: the action redirects to a page with the name of the notice (``?done=…``)."""

from collections.abc import Mapping

NOTICES: Mapping[str, str] = {
    "confirmed": "Thank you. You can go on.",
    "user-created": "The user has been created.",
    "user-saved": "The changes have been saved.",
    "password-set": "The user has a new password, and has been signed out everywhere.",
    "user-disabled": "The user has been disabled and signed out everywhere.",
    "user-enabled": "The user can sign in again.",
    "user-deleted": "The account has been closed. It will be erased on the day that is shown below.",
    "user-kept": "The deletion has been cancelled. The user can sign in again.",
    "sessions-ended": "The user has been signed out everywhere.",
    "session-ended": "That browser has been signed out.",
    "game-ended": "The user has been signed out of that game.",
    "factors-reset": "The second factors have been removed. The user has been signed out and gets an e-mail about it.",
    "invitation-revoked": "The invitation has been revoked. Its link no longer works.",
    "client-saved": "The changes have been saved.",
    "branding-saved": "The branding has been saved. Users see it at their next sign-in.",
    "client-disabled": "The client has been disabled. Its tokens no longer work.",
    "client-enabled": "The client can be used again.",
    "client-deleted": "The client has been deleted, with everything that it was granted.",
    "rotation-finished": "The old secret no longer works.",
    "application-created": "The application has been created. Its schema and roles come next.",
    "schema-saved": "The schema has been saved.",
    "role-created": "The role has been created. Give it rules now.",
    "role-saved": "The role has been saved.",
    "role-deleted": "The role has been deleted.",
    "assertions-saved": "The assertions have been saved.",
    "key-deleted": "The access key no longer works.",
    "game-session-ended": "The login has been ended.",
    "undone": "The change has been undone. The undo is a new entry of the audit trail.",
}
