"""Forgotten passwords: a link by mail, with which the owner of the account chooses a new password."""
