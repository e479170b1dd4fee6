"""What programs can use the schema."""

from sqlalchemy import Column, Table, Text

from sso.db.tables.columns import metadata

# One row, written by the migrations.
schema_compatibility = Table("schema_compatibility", metadata, Column("oldest_program", Text, primary_key=True))
