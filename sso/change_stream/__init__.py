"""The stream of changes: what happened to permissions, users and keys, for programs that keep a copy."""
