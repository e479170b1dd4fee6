"""The settings, in the order in which they are documented: default, parser and description of each.

``sso config example`` shows the descriptions. The settings are a dataclass: importing pydantic would take longer than
everything else that a command such as ``sso client list`` does. This file has more than 300 lines because it is
one list.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from sso.core import setting_values as values
from sso.core.bind_address import parse_binds, public_bind
from sso.core.colour import Colour
from sso.core.logo import Logo
from sso.core.net import Network, parse_address, parse_networks
from sso.core.setting import setting
from sso.core.setting_values import SecretText, count, integer, seconds
from sso.core.test_players import EXAMPLE_PASSWORD

MIN_TEST_PASSWORD, MAX_TEST_PASSWORD = 12, 256  # characters


@dataclass(frozen=True)
class Settings:
    # Addresses
    bind: str = setting(
        "127.0.0.1:8000",
        values.binds,
        "Addresses to listen on, separated by commas: `host:port`, `[::1]:8000` or `unix:/path`.",
    )
    base_url: str = setting(
        "",
        values.url("http", "https", example="https://sso.example.com", has_path=False),
        "Public address of the service, without a path, and the `iss` of every token.",
        example="https://sso.example.com",
        default_text="`http://` and the first address with a port of SSO_BIND (127.0.0.1 for 0.0.0.0)",
    )
    ws_url: str = setting(
        "",
        values.url("ws", "wss", example="wss://sso.example.com"),
        "Public WebSocket address.",
        example="wss://sso.example.com",
        default_text="SSO_BASE_URL with `ws` in place of `http`",
    )
    hosts: tuple[str, ...] = setting(
        (),
        values.hosts,
        "Additional host names and addresses, without ports, that a `Host` header may have.",
        example="sso.internal,10.0.0.5",
    )
    trusted_proxies: tuple[Network, ...] = setting(
        (), values.networks, "Networks of your reverse proxies.", example="127.0.0.1,10.0.0.0/8"
    )
    proxy_header: Literal["X-Forwarded-For", "Forwarded"] = setting(
        "X-Forwarded-For",
        values.choice("X-Forwarded-For", "Forwarded"),
        "The header in which the proxies send the client's address: `X-Forwarded-For` or `Forwarded`.",
    )
    metrics_bind: str | None = setting(
        None,
        values.tcp_bind,
        "Address on which `GET /metrics` is answered for Prometheus.",
        example="127.0.0.1:9090",
        see="monitoring",
    )

    # Data
    data_dir: Path = setting(
        Path("var"),
        values.path,
        "Directory for the embedded database, the master key, key files and mail.",
        see="operations",
    )
    docs_dir: Path | None = setting(
        None,
        values.path,
        "Folder with the documentation site that the service shows at `/docs/`. `off`: it shows none.",
        example="/usr/share/doc/sso",
        default_text="the site that is part of the program",
        see="operations",
    )
    database_url: SecretText | None = setting(
        None,
        values.database_url,
        "URL of a PostgreSQL database. It may name several hosts, a primary and its standbys. Without it, the embedded "
        "PostgreSQL is used. With it, SSO_SECRET_KEY and SSO_BASE_URL must be set, because several nodes may share the "
        "database.",
        example="postgresql://sso:password@db1.example.com,db2.example.com/sso",
        see="cluster",
    )
    single_node: bool = setting(
        False,
        values.flag,
        "1: only one node uses the database of SSO_DATABASE_URL, so that the defaults of SSO_SECRET_KEY and "
        "SSO_BASE_URL are allowed.",
    )
    wal_archive: Path | None = setting(
        None,
        values.path,
        "Folder in which the embedded PostgreSQL archives its write-ahead log, for point-in-time recovery.",
        example="/backups/wal",
        see="backup",
    )
    database_pool: int = setting(
        8,
        integer(5, 100),
        "Database connections of each worker, at least 5. Management, evaluations of permissions, merges of users and "
        "root use shares of them, so that logins always find free ones.",
        see="operations",
    )
    database_timeout_s: int = setting(
        2,
        integer(1, 60),
        "Seconds that a statement may take before requests are answered with 503. Transactions may take 2.5 times as "
        "long, and a new connection three quarters of it.",
    )
    bus_url: SecretText | None = setting(
        None,
        values.bus_url,
        "NATS servers that carry the wake-ups between workers: `nats://`, or `tls://` for encrypted connections. "
        "Without it, PostgreSQL carries them.",
        example="tls://sso:password@nats1.example.com:4222,nats2.example.com:4222",
        see="cluster",
    )
    bus_ca_file: Path | None = setting(
        None,
        values.certificate_file,
        "PEM file with the certificates of a private CA. If it is set, the certificates of the NATS servers are "
        "verified with this CA only, otherwise with the CAs of the system.",
        example="/etc/ssl/certs/ca-certificates.crt",
    )
    start_wait_s: int = setting(
        60,
        integer(0, 86400),
        "Seconds that `sso serve` and `sso migrate` wait for a database of SSO_DATABASE_URL that is not reachable. 0 "
        "means that they fail at once.",
    )
    secret_key: SecretText | None = setting(
        None,
        values.secret,
        "Master key, which encrypts the secrets in the database; `sso key master` prints a new one. While the key is "
        "being changed: `new,old`.",
        example="the line that `sso key master` prints",
        default_text="the file secret.key in the data directory",
        see="keys",
    )
    audit_days: int = setting(
        400,
        integer(0, 36500),
        "Days after which entries of the audit trail and past permissions are deleted. 0 keeps them forever.",
    )
    history_days: int = setting(
        90, integer(1, 3650), "Days after which events of the security history of accounts are deleted.", see="accounts"
    )
    changes_days: int = setting(
        7,
        integer(1, 365),
        "Days after which events of the stream of changes (/api/admin/changes) are deleted. A program that was away "
        "for longer has to read the current state.",
        see="changes",
    )
    deletion_days: int = setting(
        14,
        integer(0, 365),
        "Days after which an account is erased that its user has deleted and can still keep.",
        see="personal_data",
    )

    # Processes
    node_name: str | None = setting(
        None,
        values.matching(r"[A-Za-z0-9._:-]{1,64}", "must have 1-64 characters of A-Z, a-z, 0-9, . _ : and -"),
        "Name of this node in `sso status`. It must differ from the names of other nodes with the same database.",
        example="web1",
        default_text="the host name and the port",
        see="cluster",
    )
    workers: int = setting(1, integer(1, 256), "Number of worker processes.")
    user: str | None = setting(
        None,
        values.account,
        "Account to run under when the service is started by root.",
        example="nobody",
        see="operations",
    )
    http: Literal["builtin", "hypercorn", "lane"] = setting(  # "lane" is the deprecated name of "builtin"
        "builtin",
        values.choice("builtin", "hypercorn", "lane"),
        "The HTTP server: `builtin`, or `hypercorn`, which has limits of its own and is for use behind a proxy only. "
        "`lane`, the former name of `builtin`, still works and logs a warning.",
        see="http",
    )
    connections_per_address: int = setting(
        512,
        count,
        "Connections that one IPv4 address or IPv6 /64 may have to one worker; an IPv6 /48 may have ten times as many. "
        "0 means no limit. Trusted proxies and Unix sockets are exempt.",
        see="http",
    )

    # Sign-in
    rate_login: int = setting(
        60,
        count,
        "Failed logins per minute from one IPv4 address or IPv6 /64; an IPv6 /48 may have ten times as many. 0 means "
        "no limit.",
    )
    rate_account: int = setting(
        60,
        count,
        "Successful password checks per account and minute, so that hashing for one account takes little CPU time. A "
        "burst may exceed this by a few. Known devices and sign-ins with passkeys are counted separately. 0 means no "
        "limit.",
    )
    login_queue: int = setting(
        200, count, "Password checks that may wait in a worker. Further logins get 503 with `Retry-After`."
    )
    argon2_time: int = setting(
        2,
        integer(1, 100),
        "Cost of the password hash: passes. After a change, existing hashes are upgraded at the next login.",
    )
    argon2_kib: int = setting(19456, integer(8, 4 * 1024 * 1024), "Cost of the password hash: memory in KiB.")
    require_2fa: Literal["off", "admins", "all"] = setting(
        "off",
        values.choice("off", "admins", "all"),
        "Users who must have a second factor: none (`off`), users with administrative rights (`admins`) or `all`. "
        "Users without one set it up when they next sign in by page. Administrative rights then need a sign-in with "
        "it, also in programs, and with `all` every sign-in does.",
        see="second_factors",
    )
    browser_ttl_s: int = setting(1209600, seconds, "Lifetime of browser sessions in seconds.")
    jwt_ttl_s: int = setting(3600, seconds, "Lifetime of user JWTs in seconds.")
    token_ttl_s: int = setting(2592000, seconds, "Lifetime of session tokens (`token`) in seconds.")
    stoken_ttl_s: int = setting(3600, seconds, "Lifetime of session tokens (`stoken`) in seconds.")
    token_max_s: int = setting(
        15552000,
        seconds,
        "Session tokens and user JWTs can be renewed until this many seconds after the original sign-in.",
    )

    test_player_password: SecretText | None = setting(
        None,
        values.password(MIN_TEST_PASSWORD, MAX_TEST_PASSWORD),
        "Password of the test players, accounts that force an outcome of a sign-in. Without it, they are disabled.",
        example=EXAMPLE_PASSWORD,
        see="testing",
    )

    # Registration
    registration: Literal["closed", "open", "invite"] = setting(
        "closed",
        values.choice("closed", "open", "invite"),
        "Registration by page: `closed`, `invite` (only with a link of `sso user invite`) or `open` (with any e-mail "
        "address).",
        see="registration",
    )
    registration_challenge: str = setting(
        "proof-of-work",
        values.matching(
            r"off|proof-of-work|[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*",
            "must be off, proof-of-work, or a function as package.module:name",
        ),
        "What a browser must do before the registration form sends a mail: `off` (nothing), `proof-of-work`, or your "
        "own challenge, as the function that returns it: `package.module:name`.",
        see="registration",
    )
    registration_work_bits: int = setting(
        18,
        integer(1, 28),
        "Difficulty of the proof of work: a browser tries 2 to the power of this number on average. 18 takes about a "
        "second.",
    )
    rate_register: int = setting(
        20,
        count,
        "Registration forms per minute from one IPv4 address or IPv6 /64; an IPv6 /48 may send ten times as many. 0 "
        "means no limit.",
    )

    # OAuth
    oauth_session_s: int = setting(
        600, seconds, "Seconds from the authorization request to the redemption of the code."
    )
    access_ttl_s: int = setting(3600, seconds, "Lifetime of access tokens in seconds.")
    id_ttl_s: int = setting(3600, seconds, "Lifetime of ID tokens in seconds.")
    refresh_ttl_s: int = setting(2592000, seconds, "Lifetime of refresh tokens in seconds.")
    grant_max_s: int = setting(15552000, seconds, "Maximum lifetime of a grant in seconds.")
    refresh_leeway_s: int = setting(
        0, count, "Seconds during which a client may repeat a refresh whose response was lost."
    )
    rate_authorize: int = setting(
        600,
        count,
        "Authorization requests per minute without a browser session, from one IPv4 address or IPv6 /64; further ones "
        "get 429. An IPv6 /48 may have ten times as many. It also limits requests of one signed-in user that lead to a "
        "page. 0 means no limit.",
    )
    device_ttl_s: int = setting(600, seconds, "Lifetime of device codes and user codes in seconds.", see="oauth")
    rate_user_code: int = setting(
        30,
        count,
        "User codes of devices that may be tried per minute from one IPv4 address or IPv6 /64; further ones get 429. "
        "An IPv6 /48 may try ten times as many. 0 means no limit.",
    )

    client_registration: Literal["off", "approved", "token"] = setting(
        "off",
        values.choice("off", "approved", "token"),
        "How clients may register themselves: not at all (`off`), without credentials, so that an administrator has to "
        "approve them (`approved`), or with a token of an administrator only (`token`). With `approved`, the address "
        "of a metadata document is accepted as a `client_id`, too.",
        see="self_registration",
    )
    client_registration_days: int = setting(
        30,
        integer(1, 3650),
        "Days after which a client that registered itself is deleted if no user is signed in to it. One that waits for "
        "approval is deleted after 7 days at most.",
        see="self_registration",
    )
    rate_client_registration: int = setting(
        10,
        count,
        "Clients that may be registered per minute from one IPv4 address or IPv6 /64; further ones get 429. An IPv6 "
        "/48 may register ten times as many. 0 means no limit.",
    )

    backchannel_networks: tuple[Network, ...] = setting(
        (),
        values.networks,
        "Networks with private addresses to which logout notifications (`backchannel_logout_uri`) may be sent and from "
        "which keys of clients (`jwks_uri`) may be read. Public addresses are always allowed, loopback addresses while "
        "SSO_BASE_URL is a loopback address.",
        example="10.0.0.0/8",
        see="logout",
    )
    backchannel_ca_file: Path | None = setting(
        None,
        values.certificate_file,
        "PEM file with the certificates of a private CA. If it is set, the certificates of sites that receive logout "
        "notifications or publish documents are verified with this CA only, otherwise with the CAs of the system.",
        example="/etc/ssl/certs/ca-certificates.crt",
    )

    webhook_networks: tuple[Network, ...] = setting(
        (),
        values.networks,
        "Networks with private addresses to which events (webhooks) and requests about personal data (settings.gdpr of "
        "applications) may be sent. Public addresses are always allowed, loopback addresses while SSO_BASE_URL is a "
        "loopback address.",
        example="10.0.0.0/8",
        see="changes",
    )
    webhook_ca_file: Path | None = setting(
        None,
        values.certificate_file,
        "PEM file with the certificates of a private CA. If it is set, the certificates of webhooks, and of addresses "
        "in settings.gdpr of applications, are verified with this CA only, otherwise with the CAs of the system.",
        example="/etc/ssl/certs/ca-certificates.crt",
    )

    # Sign-in with other providers
    rate_upstream: int = setting(
        60,
        count,
        "Requests per minute that begin or finish a sign-in with another provider, from one IPv4 address or IPv6 /64; "
        "further ones get 429. 0 means no limit.",
    )
    rate_admin: int = setting(
        1200,
        count,
        "Requests per minute to the management API (/api/admin/) from one IPv4 address or IPv6 /64, and to the console "
        "and the permission endpoints by one user or application; further ones get 429. Frequent reads of permissions "
        "do not count. 0 means no limit.",
        see="management",
    )
    upstream_networks: tuple[Network, ...] = setting(
        (),
        values.networks,
        "Networks with private addresses, or of this machine, in which identity providers may be. Public addresses are "
        "always allowed.",
        example="10.0.0.0/8",
    )
    upstream_ca_file: Path | None = setting(
        None,
        values.certificate_file,
        "PEM file with the certificates of a private CA, with which the certificates of providers are verified.",
        example="/etc/ssl/certs/ca-certificates.crt",
        see="providers",
    )

    # Games
    vendor: str = setting(
        "sso",
        values.matching("[a-z][a-z0-9]{0,31}", "must have 1 to 32 characters of a-z and 0-9, the first one a letter"),
        "Prefix of the field `<vendor>_nick`.",
    )
    gsid_ttl_s: int = setting(
        120, seconds, "Lifetime of a game session in seconds; each poll extends it by as much.", see="game_sessions"
    )
    gsid_max_s: int = setting(1200, seconds, "Maximum lifetime of a game session in seconds.")
    gsid_hold_s: int = setting(30, seconds, "Seconds for which a poll is held.")
    gsid_heartbeat_s: int = setting(5, seconds, "Seconds between heartbeats of the WebSocket.")
    gsid_admin: Literal["allow", "deny"] = setting(
        "allow",
        values.choice("allow", "deny"),
        "`allow` or `deny`. With `deny`, tokens from a game login do not allow administration.",
        see="game_sessions",
    )
    poll_delay_s: int = setting(0, count, "Minimum `delay` of a RETRY; a busy service sends a longer one.")
    poll_strikes: int = setting(
        10, integer(1, 1_000_000), "Early polls in a minute after which the client is blocked.", see="game_sessions"
    )
    poll_block_s: int = setting(60, seconds, "Seconds for which a client that polls too early is blocked.")
    rate_getgsid: int = setting(
        600,
        count,
        "New game sessions per address and minute, then 429; an IPv6 /48 may have ten times as many. 0 means no limit.",
    )
    info_allow: tuple[Network, ...] = setting(
        parse_networks("127.0.0.1/32,::1/128"), values.networks, "Networks that may call `info`.", see="game_sessions"
    )

    # Players
    guests: Literal["off", "on"] = setting(
        "off",
        values.choice("off", "on"),
        "`on` or `off`. With `on`, players may start as guests, who have no login and sign in with a key of their "
        "device.",
        see="players",
    )
    rate_guest: int = setting(
        100,
        count,
        "New guests per hour from one IPv4 address or IPv6 /64, then 429; an IPv6 /48 may have ten times as many. 0 "
        "means no limit.",
    )
    guest_days: int = setting(
        90,
        integer(1, 3650),
        "Guests who have not been seen for this many days are erased.",
        see="players",
    )

    # Mail
    smtp_url: SecretText | None = setting(
        None,
        values.smtp_url,
        "Mail server: `smtp://`, `smtp+starttls://` or `smtps://`. Without it, mails are written to files in `mail/`. "
        "With `smtp+starttls` and `smtps` the certificate must match the host name of the URL. A mail that cannot be "
        "sent is tried eight times within about two hours.",
        example="smtp+starttls://sso:password@mail.example.com:587",
    )
    smtp_ca_file: Path | None = setting(
        None,
        values.certificate_file,
        "PEM file with the certificates of a private CA. If it is set, the mail server's certificate is verified with "
        "this CA only, otherwise with the CAs of the system.",
        example="/etc/ssl/certs/ca-certificates.crt",
    )
    mail_from: str = setting(
        "",
        values.mail_sender,
        "Sender of mails.",
        example="Iron Foundry <sso@example.com>",
        default_text="`sso@` and the host of SSO_BASE_URL",
    )

    # Brand
    brand_name: str | None = setting(
        None,
        values.line(64),
        "Name of the service on its pages, in its mails and in authenticator apps.",
        example="Iron Foundry",
        default_text="the host of SSO_BASE_URL",
        see="branding",
    )
    brand_logo: Logo | None = setting(
        None,
        values.logo,
        "Logo on the pages: an SVG, PNG or WebP file of at most 256 KiB. Mails contain it if it is a PNG file.",
        example="/etc/sso/logo.svg",
    )
    brand_accent: Colour | None = setting(
        None,
        values.accent,
        "Colour of buttons and links. The white text of buttons must have a contrast of 4.5 to 1 with it; otherwise "
        "the service does not start and suggests a darker shade.",
        example="#0f766e",
    )
    support_url: str | None = setting(
        None,
        values.link,
        "Where people get help: `https://`, `http://` or `mailto:`. Pages and mails link to it.",
        example="mailto:support@example.com",
    )
    appeal_url: str | None = setting(
        None,
        values.link,
        "Where banned players can appeal: `https://`, `http://` or `mailto:`. Games and pages show it with the reason.",
        example="https://example.com/appeal",
        see="bans",
    )
    privacy_url: str | None = setting(
        None,
        values.document_link,
        "The privacy policy. All pages link to it, and new users confirm that they have read it.",
        example="https://example.com/privacy",
        see="registration",
    )
    terms_url: str | None = setting(
        None,
        values.document_link,
        "The terms of service. All pages link to it, and new users accept them.",
        example="https://example.com/terms",
        see="registration",
    )
    terms_version: str | None = setting(
        None,
        values.line(64),
        "Version of the terms and of the privacy policy, such as their date. Users who have not accepted this version "
        "are asked when they next sign in with a browser.",
        example="2026-11-01",
        see="registration",
    )
    minimum_age: int = setting(
        0,
        values.integer(0, 99),
        "Age in years that new users confirm to have; nothing about it is stored. 0: not asked.",
        see="registration",
    )
    signin_text: str | None = setting(
        None,
        values.line(500),
        "A text on the sign-in form. It is not translated.",
        example="Use the account of your game.",
    )

    # Logs and telemetry
    log_format: Literal["auto", "json", "console"] = setting(
        "auto",
        values.choice("auto", "json", "console"),
        "`json`, `console` or `auto` (`console` if standard error is a terminal).",
    )
    log_level: Literal["debug", "info", "warning", "error"] = setting(
        "info",
        values.choice("debug", "info", "warning", "error"),
        "`debug`, `info`, `warning` or `error`.",
    )
    slow_statement_ms: int = setting(
        500, count, "Milliseconds from which a database statement is logged as slow. 0 logs none."
    )
    otlp_endpoint: str | None = setting(
        None,
        values.url("http", "https", example="http://collector:4318"),
        "Address of an OpenTelemetry collector. If it is set, traces and metrics are sent there.",
        example="http://collector:4318",
        see="monitoring",
    )
    otlp_headers: SecretText | None = setting(
        None,
        values.headers,
        "Headers for the collector; several are separated by commas.",
        example="authorization=Bearer TOKEN",
    )
    otlp_ca_file: Path | None = setting(
        None,
        values.certificate_file,
        "PEM file with the certificates of a private CA, with which the collector's certificate is verified.",
        example="/etc/ssl/certs/ca-certificates.crt",
    )
    otlp_sample_percent: int = setting(
        100, integer(0, 100), "Percentage of the requests that are traced. Metrics always count all requests."
    )
    otlp_interval_s: int = setting(5, seconds, "Seconds between two exports of a worker.")
    otlp_continue_traces: bool = setting(
        False,
        values.flag,
        "1: continue the trace in the header `traceparent` of the proxies in SSO_TRUSTED_PROXIES.",
        see="monitoring",
    )

    # Not a setting: whether SSO_BASE_URL is set, so that the base URL does not depend on the bind address of this node.
    has_base_url: bool = False

    def __post_init__(self) -> None:
        """Derives the public addresses from the bind addresses, and the sender of mail from the base URL."""
        base_url = self.base_url or public_bind(parse_binds(self.bind)).local_url()
        host = urlsplit(base_url).hostname or ""
        derived = {
            "base_url": base_url,
            "ws_url": "ws" + base_url.removeprefix("http"),
            "mail_from": f"sso@{host}" if host and ":" not in host else "sso@localhost",
        }
        for name, value in derived.items():
            if not getattr(self, name):
                object.__setattr__(self, name, value)

    @property
    def https(self) -> bool:
        return self.base_url.startswith("https://")

    @property
    def public_hosts(self) -> tuple[str, ...]:
        """The host names of the base URL and the WebSocket URL."""
        return tuple(urlsplit(url).hostname or "" for url in (self.base_url, self.ws_url))

    @property
    def is_loopback(self) -> bool:
        """Whether the service can be reached from this machine only, as far as its addresses show."""
        if not self.has_base_url and not all(bind.is_local() for bind in parse_binds(self.bind)):
            return False
        host = urlsplit(self.base_url).hostname or ""
        if host == "localhost" or host.endswith(".localhost"):
            return True
        try:
            return parse_address(host).is_loopback
        except ValueError:
            return False

    @property
    def is_private(self) -> bool:
        """Whether only this machine can connect to the service, and it is behind no proxy."""
        return self.is_loopback and all(bind.is_local() for bind in parse_binds(self.bind)) and not self.trusted_proxies

    @property
    def key_file(self) -> Path:
        return self.data_dir / "secret.key"

    @property
    def shows_docs(self) -> bool:
        return self.docs_dir != Path("off")
