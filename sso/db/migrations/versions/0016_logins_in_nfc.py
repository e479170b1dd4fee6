"""Logins in NFC, with their domains compared as A-labels.

A login whose new key belongs to another user is not changed: an operator has to decide which user keeps it.
"""

import unicodedata

import idna
import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"

_NOT_ASCII = sa.text("SELECT user_id, login, login_key FROM users WHERE octet_length(login) <> char_length(login)")
_CHANGE = sa.text(
    """UPDATE users SET login = :login, login_key = :login_key
    WHERE user_id = :user_id AND NOT EXISTS (
        SELECT 1 FROM users other WHERE other.login_key = :login_key AND other.user_id <> :user_id)"""
)


def upgrade() -> None:
    connection = op.get_bind()
    waiting = [row for row in connection.execute(_NOT_ASCII).all() if _normal(row.login) != (row.login, row.login_key)]
    while waiting:  # a key may become free when another login is changed
        left = []
        for row in waiting:
            login, login_key = _normal(row.login)
            values = {"user_id": row.user_id, "login": login, "login_key": login_key}
            if not connection.execute(_CHANGE, values).rowcount:
                left.append(row)
        if len(left) == len(waiting):
            break
        waiting = left


def _normal(login: str) -> tuple[str, str]:
    login = unicodedata.normalize("NFC", login)
    local, at, domain = login.rpartition("@")
    return login, f"{unicodedata.normalize('NFC', local.casefold())}{at}{_domain(domain)}"


def _domain(domain: str) -> str:
    if domain.isascii():
        return domain.lower()
    try:
        return idna.encode(domain, uts46=True).decode().lower()
    except UnicodeError:
        return unicodedata.normalize("NFC", domain).lower()
