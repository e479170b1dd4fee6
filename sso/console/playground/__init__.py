"""The playground: documents of permissions to try, without a database."""
