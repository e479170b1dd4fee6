"""The history of permission data: what each row was before a transaction changed it. Triggers write it."""

from sqlalchemy import BigInteger, Column, DateTime, Identity, Index, PrimaryKeyConstraint, Table, Text, func
from sqlalchemy.dialects.postgresql import JSONB

from sso.db.tables.columns import metadata

# One row: the history is complete since this moment.
permission_history = Table(
    "permission_history",
    metadata,
    Column("since", DateTime(timezone=True), primary_key=True),
)

# The transactions that have changed permission data. A deferred trigger sets the time at the commit.
permission_commits = Table(
    "permission_commits",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
)

# The rows that a transaction has changed, as they were before it.
permission_versions = Table(
    "permission_versions",
    metadata,
    Column("id", BigInteger, Identity(), nullable=False),  # orders the versions of one row
    Column("commit_id", BigInteger, nullable=False),  # without foreign key, which would double the cost of a version
    Column("kind", Text, nullable=False),  # the table; project_applications for the applications of a project
    Column("owner", Text, nullable=False),  # the user, application or project whose permissions are read with the row
    Column("key", Text, nullable=False),  # which of the owner's rows it is
    Column("image", JSONB),  # NULL: the row did not exist
    PrimaryKeyConstraint("kind", "owner", "key", "commit_id", name="pk_permission_versions"),
    Index("ix_permission_versions_commit_id", "commit_id"),
)
