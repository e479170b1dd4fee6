"""Why an entry of the audit trail cannot be undone, and what to do instead: the end of a sentence."""

from collections.abc import Mapping

NOT_STORED = "the audit trail does not have all its values, because secrets and very large values are left out"
DEFAULT = "there is no operation that stores the values before it again"
_SECRET = "a secret cannot be brought back, because the audit trail does not contain it"  # noqa: S105 - no secret
_FOLLOWED = "it followed from another change, which is the entry before or after it"
_REASONS: Mapping[str, str] = {
    "access_key.create": "delete the key on the page of its application instead",
    "access_key.delete": _SECRET,
    "application.create": "nothing would be restored; an application without roles and keys does nothing",
    "application.restore": "delete the application on its page instead",
    "application.email_secret": _SECRET,
    "application.service_jwt": "a JWT that was handed out stays valid until its key is retired",
    "assertions.override": "it records that a change was made although an assertion fails; undo that change",
    "client.create": "delete or disable the client on its page instead",
    "client.finish_rotation": _SECRET,
    "client.rotate_secret": _SECRET,
    "client.start_recording": "stop the recording on the page of the client instead",
    "client.stop_recording": "start it again on the page of the client instead",
    "game_session.terminate": "the login is over; the player begins a new one in the game",
    "identity_provider.create": "delete or disable the provider on its page instead",
    "invitation.create": "revoke the invitation on the page “Invitations” instead",
    "invitation.delete": "its link cannot be brought back; invite the user again",
    "membership.cascade": _FOLLOWED,
    "membership.save": "it changed several members at once; change them on the page of the project",
    "membership.restore": _FOLLOWED,
    "permissions.cascade": _FOLLOWED,
    "permissions.restore": _FOLLOWED,
    "project.cascade": _FOLLOWED,
    "project.publish": "delete the project on its page instead",
    "project.restore": "delete the project on its page instead",
    "client.delete": "a client that registered itself registers again",
    "registration_token.create": "revoke the token on the page “Registration tokens” instead",
    "registration_token.delete": _SECRET,
    "signal_stream.create": "remove the stream on the page of its client instead",
    "signal_stream.delete": "its client creates another one",
    "signal_stream.example": "an event that was delivered cannot be taken back; it was about nobody",
    "signal_stream.save": "change the status on the page of its client instead",
    "signing_key.retire": "a retired key does not come back; create a new one",
    "signing_key.rotate": "the new key signs already; retire it after another rotation",
    "user.create": "disable or delete the user on their page instead",
    "user.end_game": "the user signs in to the game again",
    "user.end_session": "the user signs in again",
    "user.end_sessions": "the user signs in again",
    "user.ban": "lift the ban on the page of the user instead",
    "user.erase": "the data of the user is erased",
    "user.reset_2fa": "second factors are secrets; the user sets them up again",
    "user.unban": "ban the user again on their page instead",
    "user.restore": "disable or delete the user on their page instead",
    "user.set_password": _SECRET,
    "webhook.create": "delete or disable the webhook on its page instead",
    "webhook.delete": "its secret cannot be brought back; create a new webhook",
    "webhook.retry": "the events were sent again",
}


def reason_of(operation: str) -> str:
    return _REASONS.get(operation, DEFAULT)
