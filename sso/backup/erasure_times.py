"""After a restore: moves the times forward after which the service erases accounts, guests and merged users for good,
and deletes clients that registered themselves.

The restored database does not have what happened since the backup. A user may have cancelled a deletion, a guest may
have played, and users may have signed in to a client. Without this, the service would erase those within minutes after
its start.
"""

from datetime import UTC, datetime

from msgspec import Struct

from sso.backup import BackupError
from sso.db.standalone import fetch_value

# An erasure that has begun cannot be cancelled, so it goes on.
_POSTPONE = """WITH passed AS (
        SELECT greatest(now() - CAST('{moment}' AS timestamptz), interval '0') AS time
    ), accounts AS (
        UPDATE users SET deletion_due = deletion_due + passed.time FROM passed
        WHERE deletion_due IS NOT NULL AND deletion_by IS DISTINCT FROM 'erasing' RETURNING 1
    ), guests AS (
        UPDATE device_keys k SET last_used = passed.time + greatest(
            k.last_used, (SELECT max(s.last_used) FROM sign_ins s WHERE s.user_id = k.user_id))
        FROM passed WHERE k.of_guest RETURNING k.user_id
    ), merges AS (
        UPDATE user_merges SET at = at + passed.time FROM passed WHERE moved <> '{{}}' RETURNING 1
    ), clients AS (
        UPDATE oauth_clients SET registration_used = registration_used + passed.time FROM passed
        WHERE registration_used IS NOT NULL RETURNING 1
    )
    SELECT ARRAY[(SELECT count(*) FROM accounts), (SELECT count(DISTINCT user_id) FROM guests),
        (SELECT count(*) FROM merges), (SELECT count(*) FROM clients)]"""


class PostponedErasures(Struct, frozen=True):
    """How many users and clients have as much time left as at the moment of the backup."""

    accounts: int
    guests: int
    merged_users: int
    clients: int  # that registered themselves

    def __bool__(self) -> bool:
        return bool(self.accounts or self.guests or self.merged_users or self.clients)


def moment_of(text: str) -> datetime:
    """Returns the moment at which a backup was made. Raises BackupError if its manifest has no valid time."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BackupError("the manifest of the backup cannot be read: created is not a time") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def postpone_erasures(dsn: str, moment: datetime) -> PostponedErasures:
    """Gives users and clients the time that they had left at ``moment``. The schema is that of this program."""
    return PostponedErasures(*fetch_value(dsn, _POSTPONE.format(moment=moment.isoformat())))
