"""Bans of users: the operations, what they end, and the identities that must not start again."""
