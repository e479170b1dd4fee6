"""Game sessions: a game waits for somebody to sign in with a browser."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, LargeBinary, Table, Text, text
from sqlalchemy.dialects.postgresql import ARRAY

from sso.db.tables.columns import created, expiry_index, flag, metadata, moment, text_column, words

game_sessions = Table(
    "game_sessions",
    metadata,
    Column("gsid", Text, primary_key=True),
    # What the game asked for. The confirmation may fill distr, app_id, gapp_id and with_meta if they are empty.
    Column("location", LargeBinary, nullable=False),  # the digest of the secret in the Location header
    text_column("match"),  # two words that the game and the page show
    text_column("address"),  # of the client that registered it
    Column("public_key", LargeBinary),  # DER; later requests are then signed
    text_column("distr"),
    text_column("factor"),
    text_column("jwt_public_key"),
    Column("app_id", Integer, nullable=False, server_default=text("0")),
    Column("gapp_id", Integer, nullable=False, server_default=text("0")),
    flag("nojwt"),
    flag("short_token"),
    words("fixed_ips"),
    flag("with_meta"),
    flag("with_email"),  # the secret that was sent was the application's
    flag("meta_given"),  # meta was sent, whatever its value
    Column("bound_apps", ARRAY(Integer)),  # app_id and gapp_id as registered, if the confirmation filled one of them
    created(),
    # Its life. The end moves with every poll; the row stays until no poll could have moved it any further.
    moment("ends"),
    moment("expires"),
    text_column("status", "pending"),  # then confirmed and delivered, or closed, or denied
    text_column("state"),  # as the game closed it
    text_column("stage"),  # how far the browser is
    Column("user_id", Text, ForeignKey("users.user_id", ondelete="CASCADE")),  # who confirmed
    Column("valid_from", BigInteger),  # of that user at that moment: void, if it has changed since
    # Its polls: each has a number, and only the newest may take the data.
    Column("poll", Integer, nullable=False, server_default=text("0")),
    Column("claimed_poll", Integer),
    moment("held_until", nullable=True),
    moment("retry_at", nullable=True),  # a poll before this moment is early
    Column("burst", Integer, nullable=False, server_default=text("0")),  # polls since burst_since, within a second
    moment("burst_since", nullable=True),
    # Its socket.
    Column("socket", Text),
    moment("last_seen", nullable=True),
    Column("cancels", Integer, nullable=False, server_default=text("0")),  # how often a client has closed its socket
    expiry_index("game_sessions"),
    Index("ix_game_sessions_user_id", "user_id"),
    postgresql_with={"fillfactor": "70"},  # a poll changes a row in place
)

# What was refused and why, under the id that the client was told.
game_violations = Table(
    "game_violations",
    metadata,
    Column("id", Text, primary_key=True),
    created(),
    text_column("gsid"),
    text_column("reason"),
    text_column("expected"),
    text_column("found"),
    text_column("address"),
    moment("expires"),
    expiry_index("game_violations"),
)
