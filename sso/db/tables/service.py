"""Tables of the service itself: signing keys, mails to send, workers, the schema, proxies and figures."""

from sqlalchemy import (
    CheckConstraint,
    Column,
    Date,
    DateTime,
    Float,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    func,
    text,
)

from sso.db.tables.columns import (
    SEALED,
    bigint_column,
    bool_column,
    created_column,
    expiry_index,
    json_column,
    metadata,
    text_array_column,
    text_column,
    timestamp_column,
)

# Sums over all workers, by minute: sign-ins, requests and so on.
service_figures = Table(
    "service_figures",
    metadata,
    Column("name", Text, nullable=False),
    timestamp_column("minute"),
    bigint_column("value"),
    timestamp_column("expires"),
    PrimaryKeyConstraint("name", "minute", name="pk_service_figures"),
    expiry_index("service_figures"),
)

# The steps of logins by games, by day, application (0: none) and store.
login_funnel = Table(
    "login_funnel",
    metadata,
    Column("day", Date, nullable=False),
    Column("application_id", Integer, nullable=False),
    text_column("store"),
    bigint_column("registered"),
    bigint_column("opened"),
    bigint_column("signed_in"),
    bigint_column("confirmed"),
    bigint_column("delivered"),
    bigint_column("closed"),
    timestamp_column("expires"),
    PrimaryKeyConstraint("day", "application_id", "store", name="pk_login_funnel"),
    expiry_index("login_funnel"),
)

# Peers that sent forwarding headers but are not trusted proxies, for `sso doctor`.
untrusted_proxies = Table(
    "untrusted_proxies",
    metadata,
    Column("peer", Text, primary_key=True),
    text_column("header"),
    timestamp_column("last_seen"),
    timestamp_column("expires"),
    expiry_index("untrusted_proxies"),
)

# One row, written by the migrations.
schema_compatibility = Table("schema_compatibility", metadata, Column("oldest_program", Text, primary_key=True))

# One row, once an administrator has saved a brand. Settings have precedence.
stored_brand = Table(
    "stored_brand",
    metadata,
    Column("id", Integer, primary_key=True),
    json_column("texts"),
    bigint_column("version"),
    CheckConstraint("id = 1", name="ck_stored_brand_one_row"),
)

# The logos that were uploaded last, by their digest.
brand_logos = Table(
    "brand_logos",
    metadata,
    Column("logo_id", Text, primary_key=True),
    Column("content", LargeBinary, nullable=False),
    created_column(),
)

# Each worker updates its row every few seconds, for `sso status` and `sso doctor`.
node_workers = Table(
    "node_workers",
    metadata,
    Column("worker", Text, primary_key=True),
    Column("node", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("version", Text, nullable=False),  # the version of the program
    Column("schema_version", Text, nullable=False),  # that the program was made for
    Column("base_url", Text, nullable=False),
    text_array_column("master_keys"),  # ids of the keys, the one that encrypts first
    Column("workers", Integer, nullable=False),  # that the node should have
    Column("held_polls", Integer, nullable=False),
    Column("sockets", Integer, nullable=False),
    Column("clock_offset", Float, nullable=False),  # seconds by which the clock of the host is ahead
    timestamp_column("started"),
    timestamp_column("last_seen"),
    timestamp_column("expires"),
    expiry_index("node_workers"),
)

outbox = Table(
    "outbox",
    metadata,
    Column("id", Text, primary_key=True),
    text_column("recipient"),
    text_column("subject"),
    Column("body_sealed", Text, nullable=False, info=SEALED),
    Column("html_sealed", Text, info=SEALED),  # NULL: the message is plain text
    created_column(),
    Column("next_try", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("tries", Integer, nullable=False, server_default=text("0")),
    Column("request_id", Text),  # the request that queued the message, for the log
    Column("trace_id", Text),
    Index("ix_outbox_next_try", "next_try"),
)

signing_keys = Table(
    "signing_keys",
    metadata,
    Column("kid", Text, primary_key=True),
    Column("algorithm", Text, nullable=False),
    bool_column("side"),  # signs only for clients that request its algorithm
    Column("public_pem", Text, nullable=False),
    Column("private_sealed", Text, nullable=False, info=SEALED),
    created_column(),
    timestamp_column("signs_from"),  # published earlier, so that clients have it by then
    timestamp_column("published_until", nullable=True),  # set when a newer key takes over
    timestamp_column("retired", nullable=True),  # when an operator withdrew it
)

# Counters of the rate limits (sso.db.rate_limit); the key is a digest of the counter's name.
throttle = Table(
    "throttle",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    Column("failures", Integer, nullable=False),
    timestamp_column("since"),
    timestamp_column("blocked_until"),
    timestamp_column("expires"),
    expiry_index("throttle"),
)
