"""Personal data that games have: which applications a user has used, and the requests to them."""

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Column,
    DateTime,
    ForeignKey,
    Identity,
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
    created_column,
    expiry_index,
    metadata,
    text_array_column,
    text_column,
    timestamp_column,
)

# What the history of accounts and the connected sites no longer say. No foreign key, so that the cleanup locks no user.
used_applications = Table(
    "used_applications",
    metadata,
    Column("user_id", Text, nullable=False),
    Column("application_id", Integer, nullable=False),
    PrimaryKeyConstraint("user_id", "application_id", name="pk_used_applications"),
)

# Requests to games for the data of a user, or to remove it. The user of a removal no longer exists.
data_requests = Table(
    "data_requests",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("request_id", Text, nullable=False, unique=True),  # the id that the game sees
    Column("kind", Text, nullable=False),  # data, characters, remove
    Column("user_id", Text, nullable=False),
    Column("subject_id", Text, nullable=False),  # the id that the game knows the user by: the user's, or a merged one
    Column("export_id", Text),  # the export that it belongs to; NULL for a removal
    Column("application_id", Integer, ForeignKey("applications.application_id", ondelete="CASCADE"), nullable=False),
    text_column("url"),  # the source of an export; a removal has the present addresses of the application
    text_array_column("accepted"),  # the addresses that have accepted a removal
    text_column("state", "pending"),  # pending, waiting (for the game's call), done, failed
    created_column(),
    Column("tries", Integer, nullable=False, server_default=text("0")),
    Column("next_try", DateTime(timezone=True), server_default=func.now()),  # NULL: finished
    timestamp_column("deadline"),
    text_column("problem"),
    Column("link_digest", LargeBinary, unique=True),  # of the link that the game may call once
    Column("content", Text),  # the answer, which is JSON
    Column("size", Integer, nullable=False, server_default=text("0")),  # bytes of the answer
    Column("characters", ARRAY(Text), nullable=False, server_default=text("'{}'::text[]")),
    timestamp_column("finished", nullable=True),
    timestamp_column("expires", nullable=True),
    Index("ix_data_requests_user_id", "user_id"),
    Index("ix_data_requests_export_id", "export_id"),
    Index("ix_data_requests_application_id", "application_id"),
    Index("ix_data_requests_next_try", "next_try", postgresql_where=text("next_try IS NOT NULL")),
    expiry_index("data_requests"),
)
