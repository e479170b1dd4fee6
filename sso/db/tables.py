"""All tables. A column that holds a sealed secret is marked so, for the change of the master key to find it."""

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
    MetaData,
    Sequence,
    Table,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

SEALED = {"sealed": True}


def _moment(name: str, *, nullable: bool = False) -> Column[object]:
    return Column(name, DateTime(timezone=True), nullable=nullable)


def _created() -> Column[object]:
    return Column("created", DateTime(timezone=True), nullable=False, server_default=func.now())


def _text(name: str, default: str = "") -> Column[object]:
    return Column(name, Text, nullable=False, server_default=default)


def _flag(name: str) -> Column[object]:
    return Column(name, Boolean, nullable=False, server_default=text("false"))


def _words(name: str) -> Column[object]:
    return Column(name, ARRAY(Text), nullable=False, server_default=text("'{}'::text[]"))


def _object(name: str) -> Column[object]:
    return Column(name, JSONB, nullable=False, server_default=text("'{}'::jsonb"))


def _user() -> Column[object]:
    return Column("user_id", Text, ForeignKey("users.user_id", ondelete="CASCADE"), nullable=False)


user_ids = Sequence("user_ids", start=1000, metadata=metadata)

users = Table(
    "users",
    metadata,
    Column("user_id", Text, primary_key=True),
    Column("login", Text, nullable=False),
    Column("login_key", Text, nullable=False, unique=True),  # the login without regard to case
    Column("password_hash", Text),
    _text("nick"),
    _text("country"),
    _text("lang", "en"),
    _text("level", "0"),
    _words("tags"),
    _words("purchases"),
    _flag("email_verified"),
    _text("phone"),
    _flag("phone_verified"),
    Column("totp_sealed", Text, info=SEALED),
    Column("totp_last_step", BigInteger, nullable=False, server_default=text("0")),  # a code works once
    _flag("email_2fa"),
    _object("meta"),
    Column("reg_time", DateTime(timezone=True), nullable=False, server_default=func.now()),
    _flag("disabled"),
    # Unix seconds: what was issued before this moment (password changed, user disabled) is void.
    Column("valid_from", BigInteger, nullable=False, server_default=text("0")),
)

browser_sessions = Table(
    "browser_sessions",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("id", Text, nullable=False, unique=True),  # names it on the account page
    _user(),
    _created(),
    _moment("last_seen"),
    _moment("expires"),
    _text("address"),
    _text("device"),
    _text("auth", "login"),
    Index("ix_browser_sessions_user_id", "user_id"),
    Index("ix_browser_sessions_expires", "expires"),
)

# A browser that has given the right password and owes the second factor.
login_challenges = Table(
    "login_challenges",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    _user(),
    _moment("expires"),
    Index("ix_login_challenges_expires", "expires"),
)

session_tokens = Table(
    "session_tokens",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    _user(),
    Column("kind", Text, nullable=False),  # long, short, bound
    Column("address", Text),  # where a bound one works
    _moment("expires"),
    Index("ix_session_tokens_user_id", "user_id"),
    Index("ix_session_tokens_expires", "expires"),
)

email_codes = Table(
    "email_codes",
    metadata,
    Column("user_id", Text, ForeignKey("users.user_id", ondelete="CASCADE"), primary_key=True),
    Column("digest", LargeBinary, nullable=False),
    _moment("sent"),
    _moment("expires"),
    Column("failures", Integer, nullable=False, server_default=text("0")),
)

outbox = Table(
    "outbox",
    metadata,
    Column("id", Text, primary_key=True),
    _text("recipient"),
    _text("subject"),
    Column("body_sealed", Text, nullable=False, info=SEALED),
    _created(),
    Column("next_try", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("tries", Integer, nullable=False, server_default=text("0")),
    Index("ix_outbox_next_try", "next_try"),
)

# Failed attempts per account and per address; the key is a digest of both kinds alike.
throttle = Table(
    "throttle",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    Column("failures", Integer, nullable=False),
    _moment("since"),
    _moment("blocked_until"),
    _moment("expires"),
    Index("ix_throttle_expires", "expires"),
)

signing_keys = Table(
    "signing_keys",
    metadata,
    Column("kid", Text, primary_key=True),
    Column("algorithm", Text, nullable=False),
    Column("public_pem", Text, nullable=False),
    Column("private_sealed", Text, nullable=False, info=SEALED),
    _created(),
    _moment("signs_from"),  # published before, so that everybody knows it by then
    _moment("published_until", nullable=True),  # set when a newer one takes over
    _moment("retired", nullable=True),  # taken out at once, by hand
)

oauth_clients = Table(
    "oauth_clients",
    metadata,
    Column("client_id", Text, primary_key=True),
    Column("secret_sealed", Text, info=SEALED),  # none: a public client
    Column("second_sealed", Text, info=SEALED),  # the one before, valid until a rotation is finished
    _text("name"),
    _words("redirect_hosts"),
    _words("redirect_uris"),
    _text("profile", "strict"),
    _flag("consent"),
    _flag("first_party"),
    _flag("disabled"),
    _created(),
)

applications = Table(
    "applications",
    metadata,
    Column("application_id", Integer, Identity(start=10), primary_key=True),
    _text("name"),
    _text("description"),
    Column("project_id", Text),
    _flag("removed"),
    _object("settings"),
    _object("service_meta"),
    _created(),
)


def _client() -> Column[object]:
    return Column("client_id", Text, ForeignKey("oauth_clients.client_id", ondelete="CASCADE"), nullable=False)


# An authorization that waits for somebody to sign in or to agree: the OAuth session.
oauth_requests = Table(
    "oauth_requests",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    _client(),
    _text("redirect_uri"),
    _words("scopes"),
    Column("state", LargeBinary),  # bytes: whatever came goes back unchanged
    Column("nonce", Text),
    Column("challenge", Text),  # PKCE, S256
    _words("prompts"),
    _text("login_hint"),
    Column("sub", Text),  # only this user will do (id_token_hint)
    _moment("login_after", nullable=True),  # a sign-in before this moment does not count
    _created(),
    _moment("expires"),
    Index("ix_oauth_requests_expires", "expires"),
    Index("ix_oauth_requests_client_id", "client_id"),
)

oauth_codes = Table(
    "oauth_codes",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    _client(),
    _user(),
    _text("redirect_uri"),
    _words("scopes"),
    Column("nonce", Text),
    Column("challenge", Text),
    Column("auth_time", BigInteger, nullable=False),
    Column("issued", BigInteger, nullable=False),  # Unix seconds, against users.valid_from
    Column("failures", Integer, nullable=False, server_default=text("0")),  # of client authentication
    _moment("redeemed", nullable=True),
    Column("grant_id", Text),  # what it gave, to be ended by a replay
    _moment("expires"),  # once redeemed: how long a replay is noticed
    Index("ix_oauth_codes_expires", "expires"),
    Index("ix_oauth_codes_user_id", "user_id"),
    Index("ix_oauth_codes_client_id", "client_id"),
)

# One row of state per grant, with the one live refresh token. A grant that is revoked is deleted.
oauth_grants = Table(
    "oauth_grants",
    metadata,
    Column("id", Text, primary_key=True),
    _client(),
    _user(),
    _text("redirect_uri"),
    _words("scopes"),
    Column("nonce", Text),
    Column("auth_time", BigInteger, nullable=False),
    Column("issued", BigInteger, nullable=False),  # of the code: what the user did, not when the client came
    Column("ends", BigInteger, nullable=False),  # Unix seconds; no refresh goes beyond
    Column("head", Text),  # the jti of the newest refresh token; none without offline_access
    Column("head_issued", BigInteger),
    Column("head_exp", BigInteger),
    Column("previous", Text),  # the one before, for a retry within the leeway
    _moment("rotated", nullable=True),
    _created(),
    _moment("last_used"),
    _moment("expires"),
    Index("ix_oauth_grants_expires", "expires"),
    Index("ix_oauth_grants_user_id", "user_id"),
    Index("ix_oauth_grants_client_id", "client_id"),
)

oauth_access_tokens = Table(
    "oauth_access_tokens",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("grant_id", Text, ForeignKey("oauth_grants.id", ondelete="CASCADE"), nullable=False),
    _moment("expires"),
    Index("ix_oauth_access_tokens_grant_id", "grant_id"),
    Index("ix_oauth_access_tokens_expires", "expires"),
)

oauth_consents = Table(
    "oauth_consents",
    metadata,
    Column("user_id", Text, ForeignKey("users.user_id", ondelete="CASCADE"), primary_key=True),
    Column("client_id", Text, ForeignKey("oauth_clients.client_id", ondelete="CASCADE"), primary_key=True),
    _words("scopes"),
    _created(),
    Index("ix_oauth_consents_client_id", "client_id"),
)
