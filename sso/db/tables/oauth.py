"""Web sites that sign their users in here: clients, and what passes between them and us."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, LargeBinary, Table, Text, text

from sso.db.tables.columns import (
    SEALED,
    created,
    expiry_index,
    flag,
    metadata,
    moment,
    text_column,
    user_column,
    words,
)

oauth_clients = Table(
    "oauth_clients",
    metadata,
    Column("client_id", Text, primary_key=True),
    Column("secret_sealed", Text, info=SEALED),  # none: a public client
    Column("second_sealed", Text, info=SEALED),  # the one before, valid until a rotation is finished
    text_column("name"),
    words("redirect_hosts"),
    words("redirect_uris"),
    text_column("profile", "strict"),
    text_column("id_alg"),  # of its id tokens; none: as the main key signs
    flag("consent"),
    flag("first_party"),
    flag("disabled"),
    created(),
)


def _client() -> Column[object]:
    return Column("client_id", Text, ForeignKey("oauth_clients.client_id", ondelete="CASCADE"), nullable=False)


# An authorization that waits for somebody to sign in or to agree: the OAuth session.
oauth_requests = Table(
    "oauth_requests",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    _client(),
    text_column("redirect_uri"),
    words("scopes"),
    Column("state", LargeBinary),  # bytes: whatever came goes back unchanged
    Column("nonce", Text),
    Column("challenge", Text),  # PKCE, S256
    words("prompts"),
    text_column("login_hint"),
    Column("sub", Text),  # only this user will do (id_token_hint)
    text_column("ui_locales"),
    moment("login_after", nullable=True),  # a sign-in before this moment does not count
    created(),
    moment("expires"),
    expiry_index("oauth_requests"),
    Index("ix_oauth_requests_client_id", "client_id"),
)

oauth_codes = Table(
    "oauth_codes",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    _client(),
    user_column(),
    text_column("redirect_uri"),
    words("scopes"),
    Column("nonce", Text),
    Column("challenge", Text),
    Column("auth_time", BigInteger, nullable=False),
    Column("issued", BigInteger, nullable=False),  # Unix seconds, against users.valid_from
    Column("failures", Integer, nullable=False, server_default=text("0")),  # of client authentication
    moment("redeemed", nullable=True),
    Column("grant_id", Text),  # what it gave, to be ended by a replay
    moment("expires"),  # once redeemed: how long a replay is noticed
    expiry_index("oauth_codes"),
    Index("ix_oauth_codes_user_id", "user_id"),
    Index("ix_oauth_codes_client_id", "client_id"),
)

# One row of state per grant, with the one live refresh token. A grant that is revoked is deleted.
oauth_grants = Table(
    "oauth_grants",
    metadata,
    Column("id", Text, primary_key=True),
    _client(),
    user_column(),
    text_column("redirect_uri"),
    words("scopes"),
    Column("nonce", Text),
    Column("auth_time", BigInteger, nullable=False),
    Column("issued", BigInteger, nullable=False),  # of the code: what the user did, not when the client came
    Column("ends", BigInteger, nullable=False),  # Unix seconds; no refresh goes beyond
    Column("head", Text),  # the jti of the newest refresh token; none without offline_access
    Column("head_issued", BigInteger),
    Column("head_exp", BigInteger),
    Column("previous", Text),  # the one before, for a retry within the leeway
    moment("rotated", nullable=True),
    created(),
    moment("last_used"),
    moment("expires"),
    expiry_index("oauth_grants"),
    Index("ix_oauth_grants_user_id", "user_id"),
    Index("ix_oauth_grants_client_id", "client_id"),
)

oauth_access_tokens = Table(
    "oauth_access_tokens",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("grant_id", Text, ForeignKey("oauth_grants.id", ondelete="CASCADE"), nullable=False),
    moment("expires"),
    Index("ix_oauth_access_tokens_grant_id", "grant_id"),
    expiry_index("oauth_access_tokens"),
)

oauth_consents = Table(
    "oauth_consents",
    metadata,
    Column("user_id", Text, ForeignKey("users.user_id", ondelete="CASCADE"), primary_key=True),
    Column("client_id", Text, ForeignKey("oauth_clients.client_id", ondelete="CASCADE"), primary_key=True),
    words("scopes"),
    created(),
    Index("ix_oauth_consents_client_id", "client_id"),
)
