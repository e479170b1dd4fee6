"""Settings: every one with its default, and one line for every error."""

from pathlib import Path
from typing import Any

import pytest

from sso.config import ConfigError, Settings, load
from sso.core.net import parse_networks
from sso.core.setting_values import SecretText
from tests.kit.smtp import make_certificate

DEFAULTS: dict[str, Any] = {
    "SSO_BIND": "127.0.0.1:8000",
    "SSO_BASE_URL": "http://127.0.0.1:8000",
    "SSO_WS_URL": "ws://127.0.0.1:8000",
    "SSO_DATA_DIR": Path("var"),
    "SSO_DATABASE_URL": None,
    "SSO_WORKERS": 1,
    "SSO_SECRET_KEY": None,
    "SSO_TRUSTED_PROXIES": (),
    "SSO_PROXY_HEADER": "X-Forwarded-For",
    "SSO_INFO_ALLOW": parse_networks("127.0.0.1/32,::1/128"),
    "SSO_VENDOR": "sso",
    "SSO_GSID_HOLD_S": 30,
    "SSO_GSID_TTL_S": 120,
    "SSO_GSID_MAX_S": 1200,
    "SSO_GSID_HEARTBEAT_S": 5,
    "SSO_GSID_ADMIN": "allow",
    "SSO_OAUTH_SESSION_S": 600,
    "SSO_ACCESS_TTL_S": 3600,
    "SSO_ID_TTL_S": 3600,
    "SSO_REFRESH_TTL_S": 2592000,
    "SSO_JWT_TTL_S": 3600,
    "SSO_POLL_DELAY_S": 0,
    "SSO_POLL_STRIKES": 10,
    "SSO_POLL_BLOCK_S": 60,
    "SSO_RATE_GETGSID": 600,
    "SSO_RATE_LOGIN": 60,
    "SSO_RATE_ACCOUNT": 60,
    "SSO_LOGIN_QUEUE": 200,
    "SSO_RATE_AUTHORIZE": 600,
    "SSO_HTTP": "builtin",
    "SSO_CONNECTIONS_PER_ADDRESS": 512,
    "SSO_AUDIT_DAYS": 400,
    "SSO_HISTORY_DAYS": 90,
    "SSO_CHANGES_DAYS": 7,
    "SSO_DELETION_DAYS": 14,
    "SSO_REFRESH_LEEWAY_S": 0,
    "SSO_GRANT_MAX_S": 15552000,
    "SSO_TOKEN_TTL_S": 2592000,
    "SSO_TOKEN_MAX_S": 15552000,
    "SSO_STOKEN_TTL_S": 3600,
    "SSO_BROWSER_TTL_S": 1209600,
    "SSO_SMTP_URL": None,
    "SSO_SLOW_STATEMENT_MS": 500,
    "SSO_OTLP_ENDPOINT": None,
    "SSO_OTLP_HEADERS": None,
    "SSO_OTLP_CA_FILE": None,
    "SSO_OTLP_SAMPLE_PERCENT": 100,
    "SSO_OTLP_INTERVAL_S": 5,
    "SSO_OTLP_CONTINUE_TRACES": False,
    "SSO_SMTP_CA_FILE": None,
    "SSO_BUS_URL": None,
    "SSO_BUS_CA_FILE": None,
    "SSO_METRICS_BIND": None,
    "SSO_USER": None,
    "SSO_ARGON2_TIME": 2,
    "SSO_ARGON2_KIB": 19456,
}


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    return tmp_path / "sso.toml"


def value_of(settings: Settings, name: str) -> Any:
    return getattr(settings, name.removeprefix("SSO_").lower())


def error_of(environ: dict[str, str], config_file: Path | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load(config_file, environ)
    text = str(caught.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize("name", DEFAULTS)
def test_every_setting_has_its_default(name: str) -> None:
    assert value_of(load(None, {}), name) == DEFAULTS[name]


@pytest.mark.parametrize("name", ["builtin", "hypercorn", "lane"])
def test_http_server_is_chosen_by_name(name: str) -> None:
    assert load(None, {"SSO_HTTP": name}).http == name


def test_unknown_http_server_is_refused() -> None:
    assert error_of({"SSO_HTTP": "carrier-pigeon"}).startswith("SSO_HTTP: ")


EXAMPLES = {
    "SSO_BIND": ("0.0.0.0:80,unix:/run/sso.sock", "0.0.0.0:80,unix:/run/sso.sock"),
    "SSO_DATA_DIR": ("/var/lib/sso", Path("/var/lib/sso")),
    "SSO_DATABASE_URL": ("postgres://u:p@h/d", SecretText("postgres://u:p@h/d")),
    "SSO_WORKERS": ("4", 4),
    "SSO_SECRET_KEY": ("k", SecretText("k")),
    "SSO_TRUSTED_PROXIES": ("10.0.0.0/8, ::1", parse_networks("10.0.0.0/8,::1/128")),
    "SSO_PROXY_HEADER": ("Forwarded", "Forwarded"),
    "SSO_VENDOR": ("acme2", "acme2"),
    "SSO_RATE_LOGIN": ("0", 0),
    "SSO_SMTP_URL": ("smtp+starttls://u:p@mail", SecretText("smtp+starttls://u:p@mail")),
    "SSO_BUS_URL": ("nats://u:p@a,b:4223", SecretText("nats://u:p@a,b:4223")),
    "SSO_METRICS_BIND": ("127.0.0.1:9000", "127.0.0.1:9000"),
    "SSO_SLOW_STATEMENT_MS": ("0", 0),
    "SSO_OTLP_ENDPOINT": ("https://collector:4318/", "https://collector:4318"),
    "SSO_OTLP_HEADERS": ("a=b, c=d=e f", SecretText("a=b, c=d=e f")),
    "SSO_OTLP_SAMPLE_PERCENT": ("5", 5),
    "SSO_OTLP_INTERVAL_S": ("60", 60),
    "SSO_OTLP_CONTINUE_TRACES": ("1", True),
    "SSO_USER": ("nobody", "nobody"),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_environment_takes_precedence_over_the_file(name: str, config_file: Path) -> None:
    text, value = EXAMPLES[name]
    assert value_of(load(None, {name: text}), name) == value
    config_file.write_text(f"{name} = '{text}'\n")
    assert value_of(load(config_file, {}), name) == value
    config_file.write_text(f"{name} = 'not this one'\n")
    assert value_of(load(config_file, {name: text}), name) == value


def test_sso_config_names_the_file(config_file: Path, tmp_path: Path) -> None:
    config_file.write_text("SSO_WORKERS = 3\n")
    assert load(None, {"SSO_CONFIG": str(config_file)}).workers == 3
    assert load(None, {"SSO_CONFIG": ""}).workers == 1
    other = tmp_path / "other.toml"
    other.write_text("SSO_WORKERS = 5\n")
    assert load(other, {"SSO_CONFIG": str(config_file)}).workers == 5
    assert str(tmp_path / "missing") in error_of({"SSO_CONFIG": str(tmp_path / "missing")})
    config_file.write_text("SSO_CONFIG = 'other.toml'\n")
    assert error_of({}, config_file) == "SSO_CONFIG: there is no such setting"


def test_settings_of_file_and_environment_are_combined(config_file: Path) -> None:
    config_file.write_text("SSO_WORKERS = 3\nSSO_VENDOR = 'acme'\n")
    settings = load(config_file, {"SSO_VENDOR": "other", "HOME": "/home/ann", "PATH": "/bin", "XSSO_A": "1"})
    assert (settings.workers, settings.vendor) == (3, "other")


@pytest.mark.parametrize("name", DEFAULTS)
def test_empty_variable_means_absent(name: str) -> None:
    assert value_of(load(None, {name: ""}), name) == DEFAULTS[name]


def test_lists_may_be_arrays_in_toml(config_file: Path) -> None:
    config_file.write_text(
        """
        SSO_BIND = ["127.0.0.1:8001", "unix:/run/sso.sock"]
        SSO_TRUSTED_PROXIES = ["10.0.0.0/8", "fd00::/8"]
        SSO_INFO_ALLOW = []
        SSO_HOSTS = []
        """
    )
    settings = load(config_file, {})
    assert settings.bind == "127.0.0.1:8001,unix:/run/sso.sock"
    assert settings.base_url == "http://127.0.0.1:8001"
    assert settings.trusted_proxies == parse_networks("10.0.0.0/8,fd00::/8")
    assert (settings.info_allow, settings.hosts) == ((), ())


@pytest.mark.parametrize(
    ("given", "base_url", "ws_url"),
    [
        ({"SSO_BIND": "0.0.0.0:9000"}, "http://127.0.0.1:9000", "ws://127.0.0.1:9000"),
        ({"SSO_BIND": "unix:/run/sso.sock,127.0.0.1:9000"}, "http://127.0.0.1:9000", "ws://127.0.0.1:9000"),
        ({"SSO_BIND": "[::]:9000"}, "http://[::1]:9000", "ws://[::1]:9000"),
        ({"SSO_BIND": "[::1]:9000, 127.0.0.1:1"}, "http://[::1]:9000", "ws://[::1]:9000"),
        ({"SSO_BIND": "unix:/run/sso.sock"}, "http://localhost", "ws://localhost"),
        ({"SSO_BIND": "127.0.0.1:0"}, "http://127.0.0.1:0", "ws://127.0.0.1:0"),
        ({"SSO_BASE_URL": "https://sso.example.com"}, "https://sso.example.com", "wss://sso.example.com"),
        ({"SSO_BASE_URL": "https://sso.example.com/"}, "https://sso.example.com", "wss://sso.example.com"),
        ({"SSO_BASE_URL": "http://x:81", "SSO_WS_URL": "wss://y/ws/"}, "http://x:81", "wss://y/ws"),
    ],
)
def test_public_addresses_default_to_the_first_bind_address(given: dict[str, str], base_url: str, ws_url: str) -> None:
    settings = load(None, given)
    assert (settings.base_url, settings.ws_url.rstrip("/")) == (base_url, ws_url)
    assert settings.https == base_url.startswith("https")


def test_mail_sender_defaults_to_the_host_of_the_base_url() -> None:
    assert load(None, {"SSO_BASE_URL": "https://sso.example.com:8443"}).mail_from == "sso@sso.example.com"
    assert load(None, {"SSO_BASE_URL": "http://[::1]:8000"}).mail_from == "sso@localhost"
    assert load(None, {"SSO_BASE_URL": "http://127.0.0.1:8000"}).mail_from == "sso@127.0.0.1"
    for sender in ("help@example.com", "Sign-on <help@example.com>"):
        assert load(None, {"SSO_MAIL_FROM": sender}).mail_from == sender


def test_smtp_ca_file_must_be_readable(tmp_path: Path) -> None:
    path = make_certificate(tmp_path).ca_file
    assert load(None, {"SSO_SMTP_CA_FILE": str(path)}).smtp_ca_file == path
    path.write_text("no certificate")
    expected = "SSO_SMTP_CA_FILE: must be a readable PEM file with the certificates of a CA"
    assert error_of({"SSO_SMTP_CA_FILE": str(path)}) == expected


def test_smtp_ca_file_belongs_to_an_encrypted_connection(tmp_path: Path) -> None:
    path = make_certificate(tmp_path).ca_file
    for url in ("smtps://mail", "smtp+starttls://mail"):
        assert load(None, {"SSO_SMTP_CA_FILE": str(path), "SSO_SMTP_URL": url}).smtp_ca_file == path
    expected = "SSO_SMTP_CA_FILE: is for an SSO_SMTP_URL that begins with smtps:// or smtp+starttls://"
    assert error_of({"SSO_SMTP_CA_FILE": str(path), "SSO_SMTP_URL": "smtp://mail"}) == expected


def test_bus_ca_file_belongs_to_an_encrypted_bus(tmp_path: Path) -> None:
    path = make_certificate(tmp_path).ca_file
    environ = {"SSO_BUS_CA_FILE": str(path), "SSO_BUS_URL": "tls://a,b"}
    assert load(None, environ).bus_ca_file == path
    environ["SSO_BUS_URL"] = "nats://a,b"
    assert error_of(environ) == "SSO_BUS_CA_FILE: is for an SSO_BUS_URL that begins with tls://"


WRONG = {
    "SSO_BIND": ["x", "8000", "127.0.0.1:99999", "[::1", ",127.0.0.1:1", "unix:relative", "::1:80"],
    "SSO_BASE_URL": [
        "x", "sso.example.com", "ftp://x", "ws://x", "HTTPS://x", "http://", "http://[::1", "http://x y", "http://x:99999",
        "http://u:p@x", "https://x/?a=1", "https://x/#a", "http://exämple.com", "http://x\n", "https://x/sso",
    ],
    "SSO_WS_URL": ["x", "http://x", "wss://"],
    "SSO_DATABASE_URL": ["x", "mysql://h/d", "postgresql://[h/d", "sqlite:///x"],
    "SSO_WORKERS": ["0", "-1", "257", "x", "1.5", "1e1", "٣", "true"],
    "SSO_TRUSTED_PROXIES": ["x", "10.0.0.0/33", "10.0.0.0/8;::1", "10.0.0.0/8,,::1", "*"],
    "SSO_INFO_ALLOW": ["everybody", "1"],
    "SSO_PROXY_HEADER": ["X-Real-IP", "x-forwarded-for"],
    "SSO_VENDOR": ["Acme", "a-b", "1a", "a" * 33, "a\n", "ä"],
    "SSO_GSID_HOLD_S": ["0", "-5", "x", "30s"],
    "SSO_JWT_TTL_S": ["0", "1.5", "99999999999"],
    "SSO_POLL_STRIKES": ["0"],
    "SSO_RATE_LOGIN": ["-1", "x"],
    "SSO_RATE_ACCOUNT": ["-1", "x"],
    "SSO_LOGIN_QUEUE": ["-1", "x"],
    "SSO_ARGON2_TIME": ["0"],
    "SSO_ARGON2_KIB": ["7", "99999999"],
    "SSO_SMTP_URL": [
        "x", "http://mail", "smtp://[mail", "smtp://", "smtp://:25", "smtp://mail:99999", "smtp://mail:smtp",
        "smtps://u:a/b@mail", "smtps://u:1/2@mail", "smtps://u:1?2@mail", "smtps://u:1#2@mail",
    ],
    "SSO_SLOW_STATEMENT_MS": ["-1", "x"],
    "SSO_OTLP_ENDPOINT": ["collector:4318", "grpc://collector", "http://u:p@collector", "http://collector?x=1"],
    "SSO_OTLP_HEADERS": ["x", "=x", "a=", "a=b,", "a b=c", "a=b\nc: d", "a=é"],
    "SSO_OTLP_CA_FILE": ["/nowhere/ca.pem", "/", "/dev/null", "/etc/hostname"],
    "SSO_OTLP_SAMPLE_PERCENT": ["101", "-1", "0.5"],
    "SSO_OTLP_INTERVAL_S": ["0", "x"],
    "SSO_OTLP_CONTINUE_TRACES": ["2", "x"],
    "SSO_SMTP_CA_FILE": ["/nowhere/ca.pem", "/", "/dev/null", "/etc/hostname"],
    "SSO_BUS_URL": ["x", "redis://a", "nats://", "nats://a,,b", "nats://a:99999", "nats://u:@a", "nats://a/b"],
    "SSO_BUS_CA_FILE": ["/nowhere/ca.pem", "/etc/ssl/certs/ca-certificates.crt"],  # without an SSO_BUS_URL
    "SSO_MAIL_FROM": ["x", "@example.com", "a@", "grp:;@example.com", "a@[1.2.3.4", "a@b.c, d@e.f", "a@b.c\nBcc: d"],
    "SSO_METRICS_BIND": ["x", "9000", "unix:/run/m.sock", "127.0.0.1:x"],
    "SSO_USER": ["root", "no-such-account", "65534", "a:b", "nobody\0"],
    "SSO_LOG_LEVEL": ["verbose"],
    "SSO_LOG_FORMAT": ["xml"],
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_invalid_value_is_reported_in_one_line(name: str, value: str, config_file: Path) -> None:
    assert error_of({name: value}).startswith(f"{name}: ")
    if value.isascii() and value.isprintable():
        config_file.write_text(f"{name} = '{value}'\n")
        assert error_of({}, config_file).startswith(f"{name}: ")


@pytest.mark.parametrize("name", ["SSO_NOPE", "SSO_", "SSO_bind", "SSO_WORKER", "SSO_MODEL_CONFIG", "SSO_HTTPS"])
def test_unknown_setting_is_reported(name: str, config_file: Path) -> None:
    assert error_of({name: "x"}) == f"{name}: there is no such setting"
    config_file.write_text(f"{name} = 'x'\n")
    assert error_of({}, config_file) == f"{name}: there is no such setting"


@pytest.mark.parametrize("name", ["workers", "sso_workers", "PATH"])
def test_other_entries_of_the_file_are_refused(name: str, config_file: Path) -> None:
    config_file.write_text(f"{name} = 1\n")
    assert f"{name}: there is no such setting" in error_of({}, config_file)


@pytest.mark.parametrize("value", ["true", "1.5", "{ a = 1 }", "[1, 2]", "2020-01-01"])
def test_value_of_wrong_type_in_the_file_is_reported(value: str, config_file: Path) -> None:
    for name in ("SSO_WORKERS", "SSO_VENDOR", "SSO_SECRET_KEY"):
        config_file.write_text(f"{name} = {value}\n")
        assert error_of({}, config_file).startswith(f"{name}: ")


def test_missing_or_invalid_file_is_reported(tmp_path: Path) -> None:
    assert str(tmp_path / "missing.toml") in error_of({}, tmp_path / "missing.toml")
    assert str(tmp_path) in error_of({}, tmp_path)
    bad = tmp_path / "bad.toml"
    for content in (b"SSO_WORKERS = ", b"\xff\xfe", b"just words", b"SSO_WORKERS = 1\nSSO_WORKERS = 2"):
        bad.write_bytes(content)
        assert f"{bad} is not TOML" in error_of({}, bad)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SSO_DATABASE_URL", "mysql://sso:hunter2@host/db"),
        ("SSO_DATABASE_URL", "postgresql://sso:hunter2[@host/db"),
        ("SSO_DATABASE_URL", "postgresql://sso:hunter2℀@host/db"),
        ("SSO_DATABASE_URL", "hunter2"),
        ("SSO_SMTP_URL", "imap://u:hunter2@host"),
        ("SSO_OTLP_ENDPOINT", "http://u:hunter2@host"),
        ("SSO_OTLP_HEADERS", "Bearer hunter2"),
        ("SSO_SMTP_URL", "smtp://u:hunter2℀@host"),
        ("SSO_BASE_URL", "https://u:hunter2@host"),
    ],
)
def test_error_does_not_repeat_a_secret(name: str, value: str, config_file: Path) -> None:
    assert "hunter2" not in error_of({name: value})
    config_file.write_text(f"SSO_SECRET_KEY = 'hunter2\n{name} = '{value}'\n")
    assert "hunter2" not in error_of({}, config_file)


def test_repr_of_settings_has_no_secrets() -> None:
    given = {
        "SSO_SECRET_KEY": "hunter2",
        "SSO_DATABASE_URL": "postgresql://sso:hunter2@host/db",
        "SSO_SMTP_URL": "smtp://u:hunter2@host",
    }
    settings = load(None, given)
    assert "hunter2" not in repr(settings)
    assert "hunter2" not in str(settings)


def test_key_file_is_in_the_data_directory() -> None:
    assert load(None, {"SSO_DATA_DIR": "/srv/sso"}).key_file == Path("/srv/sso/secret.key")
