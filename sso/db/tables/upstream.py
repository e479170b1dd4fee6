"""Sign-in with other providers: the providers, the identities that are linked to users, and unfinished sign-ins."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, LargeBinary, Table, Text, UniqueConstraint

from sso.db.tables.columns import (
    SEALED,
    bigint_column,
    bool_column,
    created_column,
    expiry_index,
    json_column,
    metadata,
    text_array_column,
    text_column,
    timestamp_column,
    user_column,
)


def _provider_column() -> Column[object]:
    return Column("provider_id", Text, ForeignKey("identity_providers.provider_id", ondelete="CASCADE"), nullable=False)


identity_providers = Table(
    "identity_providers",
    metadata,
    Column("provider_id", Text, primary_key=True),
    Column("kind", Text, nullable=False),  # of `sso.upstream.model.KINDS`
    text_column("name"),
    text_column("issuer"),
    text_column("client_id"),
    Column("secret_sealed", Text, info=SEALED),
    text_array_column("scopes"),
    text_column("authorization_url"),  # for oauth2; the other kinds derive their addresses from the issuer
    text_column("token_url"),
    text_column("userinfo_url"),
    json_column("claims"),  # for oauth2: our name of a claim -> its name in the userinfo response
    bigint_column("position"),
    bool_column("trusted_email"),
    bool_column("trusted_second_factor"),
    bool_column("keep_tokens"),
    created_column(),
    bool_column("disabled"),  # nobody can sign in with it; the links stay
    # For kinds that verify tickets of stores.
    bool_column("create_users"),  # a store account that is not linked gets a new user
    text_column("jwks_uri"),
    bigint_column("max_age"),  # seconds since the ticket was signed
    text_column("ticket_identity"),  # for steam_ticket: the name that the game passes when it requests a ticket
    text_column("certificates"),  # for game_center: trusted issuers of the certificate that signs, in PEM
)

# Identities at providers with which a user can sign in. They are removed together with their provider.
linked_identities = Table(
    "linked_identities",
    metadata,
    Column("id", Text, primary_key=True),
    _provider_column(),
    Column("subject", Text, nullable=False),
    user_column(),
    text_column("name"),  # as the provider shows it
    Column("tokens_sealed", Text, info=SEALED),  # NULL unless the provider is configured to keep them
    created_column(),
    timestamp_column("last_used"),
    UniqueConstraint("provider_id", "subject", name="uq_linked_identities_subject"),
    Index("ix_linked_identities_user_id", "user_id"),
)

# Sign-ins that wait for the provider's answer. The row is deleted by the one answer that it is valid for.
upstream_attempts = Table(
    "upstream_attempts",
    metadata,
    Column("digest", LargeBinary, primary_key=True),  # hashed from the parameter `state`
    _provider_column(),
    Column("browser", LargeBinary, nullable=False),  # digest of the cookie of the browser that began
    text_column("next"),
    Column("user_id", Text, ForeignKey("users.user_id", ondelete="CASCADE")),  # links an identity; NULL: a sign-in
    timestamp_column("expires"),
    expiry_index("upstream_attempts"),
)

# Answers of OpenID 2.0, and tickets of stores, that were accepted. Each is accepted once.
upstream_nonces = Table(
    "upstream_nonces",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    timestamp_column("expires"),
    expiry_index("upstream_nonces"),
)

# Identities that no user is linked to yet, until their browser signs in to an account or creates one.
pending_identities = Table(
    "pending_identities",
    metadata,
    Column("id", Text, primary_key=True),  # digest of the browser's cookie
    _provider_column(),
    Column("identity_sealed", Text, nullable=False, info=SEALED),
    text_column("next"),
    timestamp_column("expires"),
    expiry_index("pending_identities"),
)

# Identities that a user wanted to link although they belong to another one, until the owner of both decides.
link_conflicts = Table(
    "link_conflicts",
    metadata,
    Column("user_id", Text, ForeignKey("users.user_id", ondelete="CASCADE"), primary_key=True),  # who wanted it
    Column("link_id", Text, ForeignKey("linked_identities.id", ondelete="CASCADE"), nullable=False),
    Column("browser", LargeBinary),  # digest of the cookie of the browser; NULL: a guest in a game has asked
    Column("valid_from", BigInteger, nullable=False),  # that of the user: a revocation ends the question
    timestamp_column("expires"),
    Index("ix_link_conflicts_link_id", "link_id"),
    Index("ix_link_conflicts_browser", "browser"),
    expiry_index("link_conflicts"),
)
