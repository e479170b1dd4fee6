"""An example of each event, for developers who try their receiver out.

The examples are about users who cannot exist, so a receiver that acts on them changes nothing.
"""

from collections.abc import Mapping

from sso.change_stream.events import Change, ChangeType
from sso.change_stream.reader import StreamEvent
from sso.db.clock import DatabaseClock

USER, OTHER = "0", "00"  # the ids of users begin with another digit
APPLICATION = 10
_MERGED = {"from": OTHER, "into": USER}
_KID = {"kid": "CDIhyVCKpfIXkNJRQRRpow"}
_KEY_ID = {"key_id": "5f2b7c0e9d3a4186"}
_BAN = {"ban_id": "01K9Z6V3Q8M4", "scope": {"application_id": APPLICATION}}

SAMPLES: Mapping[str, Change] = {
    change.type: change
    for change in (
        Change(ChangeType.PERMISSIONS_CHANGED, USER, APPLICATION, {"gained": ["private_data.chat.kick"], "lost": []}),
        Change(ChangeType.APPLICATION_CHANGED, application_id=APPLICATION, data={"users": 20_000}),
        Change(ChangeType.USER_DISABLED, USER),
        Change(ChangeType.USER_ENABLED, USER),
        Change(ChangeType.USER_DELETED, USER, data={"erasure_due": "2027-01-01T12:00:00Z"}),
        Change(ChangeType.USER_RESTORED, USER, data={"disabled": False}),
        Change(ChangeType.USER_ERASED, USER),
        Change(ChangeType.USER_MERGED, USER, data=_MERGED),
        Change(ChangeType.USER_UNMERGED, USER, data=_MERGED),
        Change(ChangeType.USER_UPGRADED, USER),
        Change(ChangeType.USER_BANNED, USER, APPLICATION, {**_BAN, "until": 1_900_000_000, "reason": "Cheating"}),
        Change(ChangeType.USER_UNBANNED, USER, APPLICATION, _BAN),
        Change(ChangeType.KEY_ROTATED, data={**_KID, "algorithm": "RS256"}),
        Change(ChangeType.KEY_RETIRED, data=_KID),
        Change(ChangeType.APPLICATION_KEY_ADDED, application_id=APPLICATION, data=_KID),
        Change(ChangeType.APPLICATION_KEY_REMOVED, application_id=APPLICATION, data=_KID),
        Change(ChangeType.ACCESS_KEY_CREATED, application_id=APPLICATION, data=_KEY_ID),
        Change(ChangeType.ACCESS_KEY_DELETED, application_id=APPLICATION, data=_KEY_ID),
        Change(ChangeType.CLIENT_SECRET_ROTATED, data={"client_id": "shop"}),
    )
}


def sample_event(change_type: str, clock: DatabaseClock) -> StreamEvent:
    """Returns an event of now. Ids are times in microseconds, so each of them is new."""
    change = SAMPLES[change_type]
    return StreamEvent.from_row(
        {
            "position": int(clock.now() * 1_000_000),
            "type": change.type,
            "user_id": change.user_id,
            "application_id": change.application_id,
            "data": change.data,
            "at": clock.utc(),
        }
    )
