"""What is remembered of users to refuse them: bans, with the identities that they cover, and ids of erased users."""

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    func,
    text,
)

from sso.db.tables.columns import created_column, metadata, text_column

# Bans. One without an application and a project is of scope "all". The ban of an erased user stays as long as it lasts,
# if there are identities that must not start again. No foreign key therefore refers to the user.
user_bans = Table(
    "user_bans",
    metadata,
    Column("id", Text, primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("application_id", Integer, ForeignKey("applications.application_id")),
    Column("project_id", Text, ForeignKey("projects.id")),
    Column("until", BigInteger),  # Unix seconds; NULL: for ever
    text_column("reason"),  # for the player
    text_column("note"),  # for the staff
    text_column("author"),  # the user who has banned; empty for the command line
    created_column(),
    Index("ix_user_bans_user_id", "user_id"),
    Index("ix_user_bans_until", "until", postgresql_where=text("until IS NOT NULL")),
)

# Digests of the keys and provider identities that were linked to a banned user.
banned_identities = Table(
    "banned_identities",
    metadata,
    Column("digest", LargeBinary, nullable=False),
    Column("ban_id", Text, ForeignKey("user_bans.id", ondelete="CASCADE"), nullable=False),
    PrimaryKeyConstraint("digest", "ban_id", name="pk_banned_identities"),
    Index("ix_banned_identities_ban_id", "ban_id"),
)

# Ids of erased users: they occur in the audit trail, so no other user gets them.
erased_users = Table(
    "erased_users",
    metadata,
    Column("user_id", Text, primary_key=True),
    Column("at", DateTime(timezone=True), nullable=False, server_default=func.now()),
)
