"""Users, sessions and sign-ins."""

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
    Sequence,
    Table,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

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

HAS_SECOND_FACTOR = "totp_sealed IS NOT NULL OR email_2fa OR passkey_count > 0"
user_ids = Sequence("user_ids", start=1000, metadata=metadata)

users = Table(
    "users",
    metadata,
    Column("user_id", Text, primary_key=True),
    Column("login", Text, nullable=False),
    Column("login_key", Text, nullable=False, unique=True),  # the canonical form of the login
    Column("password_hash", Text),
    text_column("nick"),
    text_column("country"),
    text_column("lang", "en"),
    text_column("level", "0"),
    text_array_column("tags"),
    text_array_column("purchases"),
    bool_column("email_verified"),
    # When the present address was verified; a trigger sets it. NULL: it is not verified.
    timestamp_column("email_verified_at", nullable=True),
    text_column("phone"),
    bool_column("phone_verified"),
    Column("totp_sealed", Text, info=SEALED),
    Column("totp_last_step", BigInteger, nullable=False, server_default=text("0")),  # a code is accepted once
    bool_column("email_2fa"),
    Column("passkey_count", Integer, nullable=False, server_default=text("0")),  # rows of this user in passkeys
    Column("passkey_handle", LargeBinary, unique=True),  # random; passkeys know the user by it, and by nothing else
    json_column("meta"),
    Column("reg_time", DateTime(timezone=True), nullable=False, server_default=func.now()),
    bool_column("disabled"),
    # Unix seconds: tokens and sessions from before this moment are invalid (password changed, user disabled).
    Column("valid_from", BigInteger, nullable=False, server_default=text("0")),
    # When login, nick, lang or email_verified was changed; a trigger sets it. NULL: not since the registration.
    timestamp_column("updated", nullable=True),
    Column("sign_in_notices", Boolean, nullable=False, server_default=text("true")),  # mails about new devices
    timestamp_column("first_sign_in", nullable=True),
    text_column("terms_version"),  # the version of the terms that the user has accepted
    timestamp_column("terms_accepted", nullable=True),
    timestamp_column("deletion_due", nullable=True),  # when the account will be erased; it is disabled until then
    Column("deletion_by", Text),  # who may keep it: user; operator (support only); disabled (and it stays disabled)
    Column("merged_into", Text, ForeignKey("users.user_id", ondelete="CASCADE")),  # since then it is disabled
    # The bans in user_bans, as sso.core.ban reads them; NULL: none. Statements that read the user need no other table.
    Column("bans", JSONB),
    # For searches and sorted lists; the first two have the collation "C".
    Index("ix_users_login_key_c", "login_key"),
    Index("ix_users_nick_c", text("lower(nick)"), "user_id"),
    Index("ix_users_reg_time", "reg_time", "user_id"),
    Index("ix_users_search", text("search_trigrams(login_key, lower(nick))"), postgresql_using="gin"),
    Index("ix_users_disabled", "user_id", postgresql_where=text("disabled")),
    Index("ix_users_email_verified", "email_verified"),
    Index("ix_users_two_step", "user_id", postgresql_where=text(HAS_SECOND_FACTOR)),
    Index("ix_users_tags", "tags", postgresql_using="gin"),  # these three: for conditions of roles and groups
    Index("ix_users_purchases", "purchases", postgresql_using="gin"),
    Index("ix_users_domain", text("""\"substring\"(login_key, '@([^@]*)$'::text)""")),  # substring(… FROM …)
    Index("ix_users_merged_into", "merged_into", postgresql_where=text("merged_into IS NOT NULL")),
    Index("ix_users_banned", "user_id", postgresql_where=text("bans IS NOT NULL")),
    Index("ix_users_deletion_due", "deletion_due", postgresql_where=text("deletion_due IS NOT NULL")),
)

browser_sessions = Table(
    "browser_sessions",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("id", Text, nullable=False, unique=True),  # the id on the account page
    user_column(),
    created_column(),
    timestamp_column("last_seen"),
    timestamp_column("expires"),
    text_column("address"),
    text_column("device"),
    text_column("auth", "login"),
    Column("authenticated", DateTime(timezone=True)),  # when the user last proved who they are; NULL: not recently
    bool_column("must_enrol"),  # the user must set up a second factor before the session can be used
    Column("sid", Text),  # the claim `sid` of ID tokens, kept when the user signs in again; NULL: the id
    Index("ix_browser_sessions_user_id", "user_id"),
    expiry_index("browser_sessions"),
)

# Sessions that someone ended elsewhere: the browser that still has the cookie is told why it is signed out.
ended_sessions = Table(
    "ended_sessions",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    user_column(),
    Column("ended", DateTime(timezone=True), nullable=False, server_default=func.now()),
    timestamp_column("expires"),
    Index("ix_ended_sessions_user_id", "user_id"),
    expiry_index("ended_sessions"),
)

# Browsers whose user has entered the correct password and must enter the second factor.
login_challenges = Table(
    "login_challenges",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    user_column(),
    timestamp_column("expires"),
    text_column("auth", "login"),  # the first factor: a password, or another provider
    expiry_index("login_challenges"),
)

# Sign-ins of programs (games, launchers, scripts). Session tokens and user JWTs of a sign-in end with it.
sign_ins = Table(
    "sign_ins",
    metadata,
    Column("id", Text, primary_key=True),  # the claim `sid` of its user JWTs
    user_column(),
    created_column(),
    Column("auth_time", BigInteger),  # when the user authenticated; NULL: at its creation; 0: no proof is known
    timestamp_column("last_used"),
    timestamp_column("expires"),
    text_column("address"),  # where the last request came from
    text_column("auth", "login"),  # how the user authenticated: login, otp, gsid
    bool_column("second_factor"),  # one was used for the sign-in, or by the browser that confirmed it
    bigint_column("app_id"),
    bigint_column("gapp_id"),
    Column("device_key", LargeBinary),  # the digest of the key that made the sign-in; NULL: no key did
    bool_column("ended"),  # by the user: its JWTs are invalid; the row is kept until they have expired
    Index("ix_sign_ins_user_id", "user_id", "last_used"),
    expiry_index("sign_ins"),
)

session_tokens = Table(
    "session_tokens",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    user_column(),
    Column("kind", Text, nullable=False),  # long, short, bound
    Column("address", Text),  # the only address that may use a bound token
    timestamp_column("expires"),
    Column("sign_in", Text, nullable=False),
    Column("ips", ARRAY(Text)),  # networks that may use derived user JWTs; NULL: all
    bigint_column("app_id"),  # 0: any application
    bigint_column("gapp_id"),
    # The last use, at first the issue.
    Column("used", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Index("ix_session_tokens_user_id", "user_id", "used", "digest"),
    expiry_index("session_tokens"),
)

email_codes = Table(
    "email_codes",
    metadata,
    Column("user_id", Text, ForeignKey("users.user_id", ondelete="CASCADE"), primary_key=True),
    Column("digest", LargeBinary, nullable=False),
    timestamp_column("sent"),
    timestamp_column("expires"),
    Column("failures", Integer, nullable=False, server_default=text("0")),
)

# Consecutive wrong second-factor codes, counted before they are checked. A correct code deletes the row.
factor_guesses = Table(
    "factor_guesses",
    metadata,
    Column("user_id", Text, ForeignKey("users.user_id", ondelete="CASCADE"), primary_key=True),
    Column("factor", Text, primary_key=True),  # totp, email, recovery
    Column("attempts", Integer, nullable=False),
    bool_column("owner_notified"),
)

# Recovery codes replace a second factor that is lost. A set has a key of its own for the digests of its codes, so that
# they outlive a change of the master key.
recovery_code_sets = Table(
    "recovery_code_sets",
    metadata,
    Column("user_id", Text, ForeignKey("users.user_id", ondelete="CASCADE"), primary_key=True),
    Column("key_sealed", Text, nullable=False, info=SEALED),
    created_column(),
)

# The codes that have not been used.
recovery_codes = Table(
    "recovery_codes",
    metadata,
    Column("user_id", Text, ForeignKey("users.user_id", ondelete="CASCADE"), primary_key=True),
    Column("digest", LargeBinary, primary_key=True),
)

passkeys = Table(
    "passkeys",
    metadata,
    Column("id", Text, primary_key=True),  # the id on the account page
    Column("credential_id", LargeBinary, nullable=False, unique=True),
    user_column(),
    Column("public_key", LargeBinary, nullable=False),  # in COSE form
    Column("sign_count", BigInteger, nullable=False),
    text_column("name"),
    text_array_column("transports"),
    created_column(),
    Column("last_used", DateTime(timezone=True)),
    Index("ix_passkeys_user_id", "user_id"),
)

# Challenges that a passkey has signed. Each is accepted once.
used_passkey_challenges = Table(
    "used_passkey_challenges",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    timestamp_column("expires"),
    expiry_index("used_passkey_challenges"),
)

# Devices that have signed in with a factor. They only decide which counter of failed attempts is used.
known_factors = Table(
    "known_factors",
    metadata,
    Column("digest", LargeBinary, primary_key=True),  # HMAC of account and factor
    user_column(),
    timestamp_column("expires"),
    Index("ix_known_factors_user_id", "user_id"),
    expiry_index("known_factors"),
)

# Links that were sent by mail, such as the one that resets a password. Each works once.
mailed_links = Table(
    "mailed_links",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("purpose", Text, nullable=False),
    Column("user_id", Text, ForeignKey("users.user_id", ondelete="CASCADE")),  # NULL: there is no account yet
    json_column("data"),
    created_column(),
    timestamp_column("expires"),
    Index("ix_mailed_links_user_id", "user_id"),
    expiry_index("mailed_links"),
)

# Codes that were mailed to register an address. The key is the digest of the visit cookie of the browser that asked.
registration_codes = Table(
    "registration_codes",
    metadata,
    Column("visit", LargeBinary, primary_key=True),
    Column("login", Text, nullable=False),
    Column("code", LargeBinary, nullable=False),  # a MAC
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    timestamp_column("expires"),
    expiry_index("registration_codes"),
)

# Puzzles of the registration form that were solved. Each is accepted once.
used_puzzles = Table(
    "used_puzzles",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    timestamp_column("expires"),
    expiry_index("used_puzzles"),
)

# The security history of users (sso.accounts.history).
account_events = Table(
    "account_events",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    user_column(),
    Column("at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("kind", Text, nullable=False),
    text_column("address"),
    text_column("device"),
    json_column("detail"),
    Column("times", Integer, nullable=False, server_default=text("1")),  # failed attempts that share the row
    timestamp_column("last_at", nullable=True),  # the last of them
    Index("ix_account_events_user_id", "user_id", "id"),
)
