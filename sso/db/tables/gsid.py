"""Game sessions: a game or a device waits until its user signs in with a browser."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, LargeBinary, Table, Text, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from sso.db.tables.columns import (
    bool_column,
    created_column,
    expiry_index,
    metadata,
    text_array_column,
    text_column,
    timestamp_column,
)

game_sessions = Table(
    "game_sessions",
    metadata,
    Column("gsid", Text, primary_key=True),
    # The request of the game. The confirmation may fill distr, app_id, gapp_id and with_meta if they are empty.
    Column("location", LargeBinary, nullable=False),  # the digest of the secret in the Location header
    text_column("match"),  # two words that the game and the page show
    text_column("address"),  # where the client that registered it was
    Column("public_key", LargeBinary),  # DER; if present, later requests must be signed
    text_column("distr"),
    text_column("factor"),
    text_column("jwt_public_key"),
    Column("app_id", Integer, nullable=False, server_default=text("0")),
    Column("gapp_id", Integer, nullable=False, server_default=text("0")),
    bool_column("nojwt"),
    bool_column("short_token"),
    text_array_column("fixed_ips"),
    bool_column("with_meta"),
    bool_column("with_email"),  # the request contained the application's secret
    bool_column("meta_given"),  # the request contained meta
    Column("bound_apps", ARRAY(Integer)),  # app_id and gapp_id as registered, if the confirmation filled one of them
    created_column(),
    # Every poll moves ``ends``. ``expires`` is when ``ends`` can no longer move; then the row is deleted.
    timestamp_column("ends"),
    timestamp_column("expires"),
    text_column("status", "pending"),  # then confirmed and delivered, or closed, or denied
    text_column("state"),  # sent by the game when it closes the session
    text_column("stage"),  # the progress of the browser
    Column("user_id", Text, ForeignKey("users.user_id", ondelete="CASCADE")),  # the user that confirmed
    Column("valid_from", BigInteger),  # the user's value at that time; if it has changed, the confirmation is invalid
    # Polls are numbered, and only the newest one may claim the result.
    Column("poll", Integer, nullable=False, server_default=text("0")),
    Column("poll_holder", Text),  # the number of the newest poll and the worker that holds it, such as 3@4f2a…
    # The claim on the login. Status `delivered` with a lease (claimed_until) means: the answer is being written.
    Column("claimed_poll", Integer),
    Column("claim_id", Text),  # the newest claim, and the sign-in whose tokens were issued under it
    timestamp_column("claimed_until", nullable=True),  # then another poll may claim; NULL: no lease
    timestamp_column("held_until", nullable=True),
    timestamp_column("retry_at", nullable=True),  # an earlier poll counts as early
    Column("burst", Integer, nullable=False, server_default=text("0")),  # polls since burst_since, within a second
    timestamp_column("burst_since", nullable=True),
    # The WebSocket.
    Column("socket", Text),
    timestamp_column("last_seen", nullable=True),
    Column("cancels", Integer, nullable=False, server_default=text("0")),  # how often a client has closed its socket
    # The session of a device: it belongs to an OAuth client, which gets tokens in place of a game's login (RFC 8628).
    Column("client_id", Text, ForeignKey("oauth_clients.client_id", ondelete="CASCADE")),
    Column("scopes", ARRAY(Text)),
    Column("user_code", Text),  # what the user types on the page
    Column("interval_s", Integer),  # between two requests of the device that are not held
    timestamp_column("polled_at", nullable=True),  # the last of them
    Column("auth_time", BigInteger),  # when the user signed in with the browser that confirmed
    Column("auth", Text),
    Column("grant_id", Text),  # the grant of the newest claim
    # The session links a guest to an account. The guest becomes it, or is merged into it.
    Column("link_guest", Text, ForeignKey("users.user_id", ondelete="CASCADE")),
    Column("link_sign_in", Text),  # the sign-in of the guest that has opened it; NULL: it is not known
    Column("linked", Text),  # upgraded or merged, when that is done
    Column("viewer", Text),  # the user to whose browser the page is shown
    Column("ban", JSONB),  # that has ended the session; see sso.core.ban
    expiry_index("game_sessions"),
    # Not partial: a plan made while the table is small would read all of a partial index for a login.
    Index("ix_game_sessions_created", "created", "location"),
    Index("ix_game_sessions_user_id", "user_id"),
    Index("ix_game_sessions_viewer", "viewer"),
    Index("ix_game_sessions_client_id", "client_id", postgresql_where=text("client_id IS NOT NULL")),
    Index("ix_game_sessions_link_guest", "link_guest", postgresql_where=text("link_guest IS NOT NULL")),
    Index("ix_game_sessions_user_code", "user_code", unique=True, postgresql_where=text("client_id IS NOT NULL")),
    postgresql_with={"fillfactor": "70"},  # room for HOT updates: every poll updates the row
)

# Violations. The client gets only the id.
game_violations = Table(
    "game_violations",
    metadata,
    Column("id", Text, primary_key=True),
    created_column(),
    text_column("gsid"),
    text_column("reason"),
    text_column("expected"),
    text_column("found"),
    text_column("address"),
    timestamp_column("expires"),
    expiry_index("game_violations"),
)
