"""Figures of the service for the admin console."""

from sqlalchemy import Column, Date, Integer, PrimaryKeyConstraint, Table, Text

from sso.db.tables.columns import bigint_column, expiry_index, metadata, text_column, timestamp_column

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
