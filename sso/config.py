"""Settings. No other module reads the environment.

Every setting is an environment variable ``SSO_*``, or an entry of the same name in a TOML file; the environment takes
precedence. An invalid or unknown setting ends the program with one line that names it. This file has more than
300 lines because the checks of all settings belong together.
"""

import os
import pwd
import re
import ssl
import tomllib
from collections.abc import Mapping
from email.message import EmailMessage
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from sso.core.bind_address import Bind, parse_bind, parse_binds, public_bind
from sso.core.net import Network, parse_address, parse_networks

PREFIX = "SSO_"
EXPECTED_MAIL_FROM = "must be an e-mail address such as sso@example.com"
URL_CHARACTERS = re.compile(r"[!\"$->@-~]+")  # printable ASCII except "#" and "?"


# Texts for pydantic's error types.
_EXPECTED = {
    "int_parsing": "must be an integer",
    "int_type": "must be an integer",
    "string_type": "must be a string",
    "path_type": "must be a path",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
    "string_pattern_mismatch": "must match {pattern}",
    "value_error": "{error}",
}


class ConfigError(Exception):
    """A setting is invalid; the text is one line that names it."""


def _networks(value: object) -> tuple[Network, ...]:
    if isinstance(value, list | tuple):
        value = ",".join(str(item) for item in value)
    if not isinstance(value, str):
        raise ValueError("must be a list of networks")  # noqa: TRY004 - pydantic collects ValueError only
    return parse_networks(value)


def _comma_separated(value: object) -> object:
    return ",".join(str(item) for item in value) if isinstance(value, list | tuple) else value


def _is_plain_address(url: str, schemes: tuple[str, ...]) -> bool:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    return (
        url.startswith(tuple(f"{scheme}://" for scheme in schemes))
        and URL_CHARACTERS.fullmatch(url) is not None
        and bool(parts.hostname)
        and parts.username is None
    )


def _has_scheme(secret: SecretStr, schemes: tuple[str, ...]) -> bool:
    """Checks the scheme here because error texts of libraries may quote the password."""
    try:
        return urlsplit(secret.get_secret_value()).scheme in schemes
    except ValueError:
        return False


def _local_url(binds: str) -> str:
    try:
        return public_bind(parse_binds(binds)).local_url()
    except ValueError:
        return "http://localhost"  # the check of SSO_BIND reports it


def _hosts(value: object) -> tuple[str, ...]:
    items = value if isinstance(value, list | tuple) else str(value).split(",")
    try:
        binds = [parse_bind(f"{str(item).strip()}:0") for item in items]  # parse_bind validates the host
    except ValueError:
        binds = [Bind()]
    if any(not bind.host for bind in binds):
        raise ValueError("expected host names or addresses without a port, separated by commas; IPv6 as [::1]")
    return tuple(bind.host for bind in binds)


Networks = Annotated[tuple[Network, ...], BeforeValidator(_networks)]
Seconds = Annotated[int, Field(ge=1, le=10 * 366 * 86400)]
Count = Annotated[int, Field(ge=0, le=1_000_000)]


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    bind: Annotated[str, BeforeValidator(_comma_separated)] = "127.0.0.1:8000"
    base_url: str = ""
    ws_url: str = ""
    data_dir: Path = Path("var")
    database_url: SecretStr | None = None
    wal_archive: Path | None = None
    database_pool: int = Field(default=8, ge=2, le=100)
    workers: int = Field(default=1, ge=1, le=256)
    secret_key: SecretStr | None = None
    trusted_proxies: Networks = ()
    proxy_header: Literal["X-Forwarded-For", "Forwarded"] = "X-Forwarded-For"
    hosts: Annotated[tuple[str, ...], BeforeValidator(_hosts)] = ()
    info_allow: Networks = Field(default=parse_networks("127.0.0.1/32,::1/128"))
    vendor: str = Field(default="sso", pattern=r"^[a-z][a-z0-9]{0,31}$")
    gsid_hold_s: Seconds = 30
    gsid_ttl_s: Seconds = 120
    gsid_max_s: Seconds = 1200
    gsid_heartbeat_s: Seconds = 5
    gsid_admin: Literal["allow", "deny"] = "allow"
    oauth_session_s: Seconds = 600
    access_ttl_s: Seconds = 3600
    id_ttl_s: Seconds = 3600
    refresh_ttl_s: Seconds = 2592000
    jwt_ttl_s: Seconds = 3600
    poll_delay_s: Count = 0
    poll_strikes: int = Field(default=10, ge=1)
    poll_block_s: Seconds = 60
    rate_getgsid: Count = 600
    rate_login: Count = 60
    rate_authorize: Count = 600
    rate_account: Count = 60
    login_queue: Count = 200
    refresh_leeway_s: Count = 0
    grant_max_s: Seconds = 15552000
    token_ttl_s: Seconds = 2592000
    token_max_s: Seconds = 15552000
    stoken_ttl_s: Seconds = 3600
    browser_ttl_s: Seconds = 1209600
    smtp_url: SecretStr | None = None
    smtp_ca_file: Path | None = None
    mail_from: str = ""
    metrics_bind: str | None = None
    user: str | None = None
    http: Literal["builtin", "hypercorn", "lane"] = "builtin"  # "lane" is the deprecated name of "builtin"
    connections_per_address: Count = 512
    argon2_time: int = Field(default=2, ge=1, le=100)
    argon2_kib: int = Field(default=19456, ge=8, le=4 * 1024 * 1024)
    audit_days: int = Field(default=400, ge=0, le=36500)
    log_format: Literal["auto", "json", "console"] = "auto"
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @field_validator("bind", "metrics_bind")
    @classmethod
    def _check_binds(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and any(bind.path for bind in parse_binds(value)) and info.field_name != "bind":
            raise ValueError("must be host:port")
        return value

    @field_validator("user")
    @classmethod
    def _check_user(cls, value: str | None) -> str | None:
        try:
            uid = pwd.getpwnam(value).pw_uid if value else None
        except (KeyError, ValueError):
            raise ValueError("must be the name of an account on this machine") from None
        if uid == 0:
            raise ValueError("must not be root")
        return value

    @field_validator("base_url", "ws_url")
    @classmethod
    def _check_public_url(cls, value: str, info: ValidationInfo) -> str:
        schemes = ("http", "https") if info.field_name == "base_url" else ("ws", "wss")
        if not _is_plain_address(value, schemes):
            raise ValueError(f"must be an address such as {schemes[1]}://sso.example.com")
        return value.rstrip("/")

    @field_validator("smtp_url")
    @classmethod
    def _check_smtp_url(cls, value: SecretStr | None) -> SecretStr | None:
        if value and not _has_scheme(value, ("smtp", "smtps", "smtp+starttls")):
            raise ValueError("must be a URL that begins with smtp://, smtp+starttls:// or smtps://")
        return value

    @field_validator("smtp_ca_file")
    @classmethod
    def _check_smtp_ca_file(cls, value: Path | None) -> Path | None:
        if value:
            try:
                ssl.create_default_context(cafile=str(value))
            except (OSError, ValueError):
                raise ValueError("must be a readable PEM file with the certificates of a CA") from None
        return value

    @field_validator("mail_from")
    @classmethod
    def _check_mail_from(cls, value: str) -> str:
        try:
            message = EmailMessage()
            message["From"] = value
            (address,) = message["From"].addresses
        except Exception:  # the parser of the library raises errors of many kinds
            raise ValueError(EXPECTED_MAIL_FROM) from None
        if not (address.username and address.domain and value.isprintable()):
            raise ValueError(EXPECTED_MAIL_FROM)
        return value

    @field_validator("database_url")
    @classmethod
    def _check_database_url(cls, value: SecretStr | None) -> SecretStr | None:
        if value and not _has_scheme(value, ("postgresql", "postgres")):
            raise ValueError("must be a URL that begins with postgresql://")
        return value

    @field_validator("wal_archive")
    @classmethod
    def _check_wal_archive(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        if value and info.data.get("database_url"):
            raise ValueError("is for the embedded PostgreSQL: with SSO_DATABASE_URL, use your server's archive_command")
        return value

    @model_validator(mode="before")
    @classmethod
    def _derive_defaults(cls, values: Any) -> Any:
        """Derives the public addresses from the bind addresses, and the sender of mail from the base URL."""
        if not isinstance(values, dict):
            return values
        values = {key: value for key, value in values.items() if value != ""}
        values.setdefault("base_url", _local_url(str(_comma_separated(values.get("bind", "127.0.0.1:8000")))))
        base = str(values["base_url"])
        values.setdefault("ws_url", "ws" + base.removeprefix("http") if base.startswith("http") else base)
        host = urlsplit(base).hostname if _is_plain_address(base, ("http", "https")) else None
        values.setdefault("mail_from", f"sso@{host}" if host and ":" not in host else "sso@localhost")
        return values

    @property
    def https(self) -> bool:
        return self.base_url.startswith("https://")

    @property
    def public_hosts(self) -> tuple[str, ...]:
        """The host names of the base URL and the WebSocket URL."""
        return tuple(urlsplit(url).hostname or "" for url in (self.base_url, self.ws_url))

    @property
    def is_loopback(self) -> bool:
        """Whether the service can be reached from this machine only."""
        if not all(bind.is_local() for bind in parse_binds(self.bind)):
            return False
        host = urlsplit(self.base_url).hostname or ""
        if host == "localhost" or host.endswith(".localhost"):
            return True
        try:
            return parse_address(host).is_loopback
        except ValueError:
            return False

    @property
    def key_file(self) -> Path:
        return self.data_dir / "secret.key"


def allows_colour(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a terminal may be written to in colours; see https://no-color.org."""
    return not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def load(config_file: Path | None = None, environ: Mapping[str, str] = os.environ) -> Settings:
    values = _from_file(config_file) if config_file else {}
    values |= {name: value for name, value in environ.items() if name.startswith(PREFIX)}
    for name in values:
        if name.removeprefix(PREFIX).lower() not in Settings.model_fields or name != name.upper():
            raise ConfigError(f"{name}: there is no such setting")
    try:
        return Settings.model_validate({name.removeprefix(PREFIX).lower(): value for name, value in values.items()})
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = PREFIX + str(first["loc"][0]).upper() if first["loc"] else "settings"
        expected = _EXPECTED.get(first["type"], "is not valid").format_map(first.get("ctx", {}))
        raise ConfigError(f"{name}: {expected}") from None


def _from_file(path: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None
    for name in values:
        if not name.startswith(PREFIX):
            raise ConfigError(f"{path}: {name}: there is no such setting (names begin with {PREFIX})")
        if isinstance(values[name], bool | float | dict):
            raise ConfigError(f"{name}: must be a string, an integer or a list")
    return values
