"""Users and how they sign in."""

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Column,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Sequence,
    Table,
    Text,
    func,
    text,
)

from sso.db.tables.columns import (
    SEALED,
    created,
    expiry_index,
    flag,
    json_object,
    metadata,
    moment,
    number,
    text_column,
    user_column,
    words,
)

user_ids = Sequence("user_ids", start=1000, metadata=metadata)

users = Table(
    "users",
    metadata,
    Column("user_id", Text, primary_key=True),
    Column("login", Text, nullable=False),
    Column("login_key", Text, nullable=False, unique=True),  # the login as it is compared
    Column("password_hash", Text),
    text_column("nick"),
    text_column("country"),
    text_column("lang", "en"),
    text_column("level", "0"),
    words("tags"),
    words("purchases"),
    flag("email_verified"),
    text_column("phone"),
    flag("phone_verified"),
    Column("totp_sealed", Text, info=SEALED),
    Column("totp_last_step", BigInteger, nullable=False, server_default=text("0")),  # a code works once
    flag("email_2fa"),
    json_object("meta"),
    Column("reg_time", DateTime(timezone=True), nullable=False, server_default=func.now()),
    flag("disabled"),
    # Unix seconds: what was issued before this moment (password changed, user disabled) is void.
    Column("valid_from", BigInteger, nullable=False, server_default=text("0")),
)

browser_sessions = Table(
    "browser_sessions",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("id", Text, nullable=False, unique=True),  # names it on the account page
    user_column(),
    created(),
    moment("last_seen"),
    moment("expires"),
    text_column("address"),
    text_column("device"),
    text_column("auth", "login"),
    Index("ix_browser_sessions_user_id", "user_id"),
    expiry_index("browser_sessions"),
)

# A browser that has given the right password and owes the second factor.
login_challenges = Table(
    "login_challenges",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    user_column(),
    moment("expires"),
    expiry_index("login_challenges"),
)

# One sign-in of a program (a game, a launcher, a script). Its session tokens and user JWTs end with it.
sign_ins = Table(
    "sign_ins",
    metadata,
    Column("id", Text, primary_key=True),  # the claim `sid` of its user JWTs
    user_column(),
    created(),  # when the user authenticated
    moment("last_used"),
    moment("expires"),
    text_column("address"),  # of the last use
    text_column("auth", "login"),  # how the user authenticated: login, otp, gsid
    number("app_id"),
    number("gapp_id"),
    flag("ended"),  # by the user: its JWTs are void. Such a row stays until they could not be used anyway
    Index("ix_sign_ins_user_id", "user_id", "last_used"),
    expiry_index("sign_ins"),
)

session_tokens = Table(
    "session_tokens",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    user_column(),
    Column("kind", Text, nullable=False),  # long, short, bound
    Column("address", Text),  # where a bound one works
    moment("expires"),
    Column("sign_in", Text, nullable=False),
    Column("ips", ARRAY(Text)),  # networks that derived user JWTs work from; NULL means everywhere
    number("app_id"),  # 0: derived credentials may be for any application
    number("gapp_id"),
    Column("used", DateTime(timezone=True), nullable=False, server_default=func.now()),  # or issued
    Index("ix_session_tokens_user_id", "user_id", "used", "digest"),
    expiry_index("session_tokens"),
)

email_codes = Table(
    "email_codes",
    metadata,
    Column("user_id", Text, ForeignKey("users.user_id", ondelete="CASCADE"), primary_key=True),
    Column("digest", LargeBinary, nullable=False),
    moment("sent"),
    moment("expires"),
    Column("failures", Integer, nullable=False, server_default=text("0")),
)

# Consecutive wrong second-factor codes, counted before they are judged. A right code deletes the row.
factor_guesses = Table(
    "factor_guesses",
    metadata,
    Column("user_id", Text, ForeignKey("users.user_id", ondelete="CASCADE"), primary_key=True),
    Column("factor", Text, primary_key=True),  # totp, email
    Column("attempts", Integer, nullable=False),
    flag("owner_notified"),
)

# Devices that have signed in with a factor. Nothing but a counter of failed attempts depends on them.
known_factors = Table(
    "known_factors",
    metadata,
    Column("digest", LargeBinary, primary_key=True),  # HMAC of account and factor
    user_column(),
    moment("expires"),
    Index("ix_known_factors_user_id", "user_id"),
    expiry_index("known_factors"),
)

outbox = Table(
    "outbox",
    metadata,
    Column("id", Text, primary_key=True),
    text_column("recipient"),
    text_column("subject"),
    Column("body_sealed", Text, nullable=False, info=SEALED),
    created(),
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
    moment("since"),
    moment("blocked_until"),
    moment("expires"),
    expiry_index("throttle"),
)
