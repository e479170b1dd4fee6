"""OAuth clients, pending authorizations, codes, grants, tokens and consents."""

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    func,
    text,
)

from sso.db.tables.columns import (
    SEALED,
    bool_column,
    created_column,
    expiry_index,
    metadata,
    text_array_column,
    text_column,
    timestamp_column,
    user_column,
)

oauth_clients = Table(
    "oauth_clients",
    metadata,
    Column("client_id", Text, primary_key=True),
    Column("secret_sealed", Text, info=SEALED),  # NULL: a public client
    Column("second_sealed", Text, info=SEALED),  # the previous secret, valid until a rotation is finished
    text_column("name"),
    text_array_column("redirect_hosts"),
    text_array_column("redirect_uris"),
    text_column("profile", "strict"),
    text_column("id_alg"),  # signing algorithm of its ID tokens; empty: the main key decides
    bool_column("consent"),
    bool_column("first_party"),
    bool_column("disabled"),
    created_column(),
    text_array_column("grant_types", "authorization_code", "refresh_token"),
    text_column("token_endpoint_auth_method"),  # empty: any method that fits whether it has a secret
    text_array_column("post_logout_redirect_uris"),  # none: any URI at the origin of a redirect URI
    text_column("logo_uri"),
    text_column("policy_uri"),
    text_column("tos_uri"),
    text_column("support_uri"),
    text_column("accent"),  # such as #0f766e
    text_column("signin_text"),
    text_array_column("origins"),  # where its pages in browsers are, besides its redirect URIs
    text_column("jwks"),  # a JWK set with the keys that sign its assertions (private_key_jwt)
    timestamp_column("secret_expires", nullable=True),  # NULL: never
    timestamp_column("second_expires", nullable=True),
    Column("application_id", Integer, nullable=False, server_default=text("0")),  # 0: none
    text_column("access_token_format", "opaque"),  # or jwt
    bool_column("resource_server"),  # it may introspect the tokens of clients of its application
    text_column("backchannel_logout_uri"),
    bool_column("backchannel_logout_session_required"),
    bool_column("require_pushed_authorization_requests"),
    bool_column("dpop_bound_access_tokens"),
    bool_column("token_exchange"),  # it may exchange tokens of users (RFC 8693)
    text_column("jwks_uri"),  # where these keys are, if they are not stored here
    text_column("registered_by"),  # how it registered itself; empty: an administrator has added it
    Column("approved", Boolean, nullable=False, server_default=text("true")),  # one that is not is disabled
    Column("registration_digest", LargeBinary),  # of the registration access token
    timestamp_column("registration_used", nullable=True),  # when it last had grants, if it registered itself
    Index(
        "ix_oauth_clients_registration_used",
        "registration_used",
        postgresql_where=text("registration_used IS NOT NULL"),
    ),
    Index("ix_oauth_clients_approved", "client_id", postgresql_where=text("NOT approved")),
)

# Initial access tokens (RFC 7591): with one, a client may register itself.
oauth_registration_tokens = Table(
    "oauth_registration_tokens",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("uses", Integer, nullable=False),
    Column("uses_left", Integer, nullable=False),
    created_column(),
    timestamp_column("expires"),
    expiry_index("oauth_registration_tokens"),
)


# The ids (jti) of client assertions that were used.
oauth_used_jtis = Table(
    "oauth_used_jtis",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    timestamp_column("expires"),
    expiry_index("oauth_used_jtis"),
)


def _client() -> Column[object]:
    return Column("client_id", Text, ForeignKey("oauth_clients.client_id", ondelete="CASCADE"), nullable=False)


# Access tokens of service clients.
oauth_service_tokens = Table(
    "oauth_service_tokens",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    _client(),
    Column("application_id", Integer, nullable=False),
    timestamp_column("expires"),
    Column("dpop_jkt", Text),  # the thumbprint of the key that it is bound to (RFC 9449)
    text_array_column("resources"),  # the resource servers that it is for (RFC 8707)
    text_array_column("scopes"),  # none: it has the rights of its application
    Index("ix_oauth_service_tokens_client_id", "client_id"),
    expiry_index("oauth_service_tokens"),
)

# Authorization requests that clients pushed (RFC 9126). A request that is used is deleted.
oauth_pushed_requests = Table(
    "oauth_pushed_requests",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    _client(),
    Column("query", LargeBinary, nullable=False),  # the parameters, encoded as in a URL
    timestamp_column("expires"),
    Index("ix_oauth_pushed_requests_client_id", "client_id"),
    expiry_index("oauth_pushed_requests"),
)

# Pending authorizations, which wait for sign-in or consent.
oauth_requests = Table(
    "oauth_requests",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    _client(),
    text_column("redirect_uri"),
    text_array_column("scopes"),
    Column("state", LargeBinary),  # bytes, to be returned unchanged
    Column("nonce", Text),
    Column("challenge", Text),  # PKCE, S256
    text_array_column("prompts"),
    text_column("login_hint"),
    Column("sub", Text),  # the only user that is accepted (id_token_hint)
    text_column("ui_locales"),
    text_column("response_mode", "query"),
    Column("dpop_jkt", Text),
    text_array_column("resources"),
    text_array_column("acr_values"),
    text_column("claims"),  # the claims that are requested one by one, as JSON
    timestamp_column("login_after", nullable=True),  # an earlier sign-in is not accepted
    created_column(),
    timestamp_column("expires"),
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
    text_array_column("scopes"),
    Column("nonce", Text),
    Column("challenge", Text),
    Column("auth_time", BigInteger, nullable=False),
    Column("issued", BigInteger, nullable=False),  # Unix seconds, compared with users.valid_from
    Column("failures", Integer, nullable=False, server_default=text("0")),  # failed client authentications
    timestamp_column("redeemed", nullable=True),
    Column("grant_id", Text),  # the grant that it was redeemed for; a replay revokes it
    timestamp_column("expires"),  # for a redeemed code: how long a replay is detected
    text_column("auth"),  # how the user signed in: `auth` of the browser session
    Column("sid", Text),  # the browser session
    Column("dpop_jkt", Text),  # the key that must redeem it
    text_array_column("resources"),
    text_column("claims"),
    expiry_index("oauth_codes"),
    Index("ix_oauth_codes_user_id", "user_id"),
    Index("ix_oauth_codes_client_id", "client_id"),
)

# A grant has one valid refresh token. A revoked grant is deleted.
oauth_grants = Table(
    "oauth_grants",
    metadata,
    Column("id", Text, primary_key=True),
    _client(),
    user_column(),
    text_column("redirect_uri"),
    text_array_column("scopes"),
    Column("nonce", Text),
    Column("auth_time", BigInteger, nullable=False),
    Column("issued", BigInteger, nullable=False),  # when the code was issued, not when it was redeemed
    Column("ends", BigInteger, nullable=False),  # Unix seconds; a refresh does not extend it
    Column("head", Text),  # jti of the current refresh token; NULL without offline_access
    Column("head_issued", BigInteger),
    Column("head_exp", BigInteger),
    Column("previous", Text),  # jti of the previous refresh token, for a retry within the leeway
    timestamp_column("rotated", nullable=True),
    created_column(),
    timestamp_column("last_used"),
    timestamp_column("expires"),
    text_column("auth"),
    Column("sid", Text),
    Column("dpop_jkt", Text),  # the key that the refresh tokens of a public client are bound to
    text_array_column("resources"),  # none: no restriction
    text_array_column("act"),  # the clients that exchanged the token of this grant, the last one first
    text_column("claims"),
    expiry_index("oauth_grants"),
    Index("ix_oauth_grants_user_id", "user_id"),
    Index("ix_oauth_grants_client_id", "client_id"),
)

oauth_access_tokens = Table(
    "oauth_access_tokens",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("grant_id", Text, ForeignKey("oauth_grants.id", ondelete="CASCADE"), nullable=False),
    timestamp_column("expires"),
    Column("dpop_jkt", Text),
    text_array_column("resources"),
    Column("scopes", ARRAY(Text)),  # some of those of the grant; NULL: all of them
    # The token that it was exchanged for. It ends with that one.
    Column("subject_digest", LargeBinary, ForeignKey("oauth_access_tokens.digest", ondelete="CASCADE")),
    Index("ix_oauth_access_tokens_grant_id", "grant_id"),
    Index(
        "ix_oauth_access_tokens_subject_digest",
        "subject_digest",
        postgresql_where=text("subject_digest IS NOT NULL"),
    ),
    expiry_index("oauth_access_tokens"),
)

oauth_consents = Table(
    "oauth_consents",
    metadata,
    Column("user_id", Text, ForeignKey("users.user_id", ondelete="CASCADE"), primary_key=True),
    Column("client_id", Text, ForeignKey("oauth_clients.client_id", ondelete="CASCADE"), primary_key=True),
    text_array_column("scopes"),
    created_column(),
    Index("ix_oauth_consents_client_id", "client_id"),
)

# The sites that a user has signed in to with a browser session, if they want to be notified of its end.
oauth_site_sessions = Table(
    "oauth_site_sessions",
    metadata,
    Column("sid", Text, primary_key=True),
    Column("client_id", Text, ForeignKey("oauth_clients.client_id", ondelete="CASCADE"), primary_key=True),
    user_column(),
    timestamp_column("expires"),
    Index("ix_oauth_site_sessions_client_id", "client_id"),
    Index("ix_oauth_site_sessions_user_id", "user_id"),
    expiry_index("oauth_site_sessions"),
)

# Logout tokens that are to be sent to sites.
logout_notifications = Table(
    "logout_notifications",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    _client(),
    Column("sub", Text, nullable=False),  # the id of a user, who may have been erased
    Column("sid", Text, nullable=False),
    created_column(),
    Column("next_try", DateTime(timezone=True), server_default=func.now()),  # NULL: it has failed
    Column("tries", Integer, nullable=False, server_default=text("0")),
    text_column("problem"),  # why the last try failed
    timestamp_column("expires"),
    Column("request_id", Text),  # the request that ended the session, for the log
    Column("trace_id", Text),
    Index("ix_logout_notifications_client_id", "client_id"),
    Index("ix_logout_notifications_next_try", "next_try"),
    expiry_index("logout_notifications"),
)
