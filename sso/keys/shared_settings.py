"""The settings that all nodes of one database share."""

from sso.config import ConfigError, Settings


def require_shared_settings(settings: Settings) -> None:
    """Raises ConfigError if other nodes may use the same database, and a setting that must be equal is not set.

    A node that creates its own master key cannot decrypt the secrets of the others. A node that derives the base URL
    from its bind address issues tokens that the others reject.
    """
    missing = [_missing_key(settings)] if settings.secret_key is None else []
    if not settings.has_base_url:
        missing.append("SSO_BASE_URL (the address that clients use, such as https://sso.example.com)")
    _refuse(settings, missing)


def require_shared_key(settings: Settings) -> None:
    """Like `require_shared_settings`, for what needs only the master key."""
    _refuse(settings, [_missing_key(settings)] if settings.secret_key is None else [])


def _refuse(settings: Settings, missing: list[str]) -> None:
    if missing and settings.database_url is not None and not settings.single_node:
        raise ConfigError(
            f"SSO_DATABASE_URL: several nodes can share this database, so set {' and '.join(missing)} to the same "
            "value on all of them; or set SSO_SINGLE_NODE=1 if there is only this node"
        )


def _missing_key(settings: Settings) -> str:
    if settings.key_file.exists():
        return f"SSO_SECRET_KEY (the key in use is in {settings.key_file}; join several lines with commas)"
    return "SSO_SECRET_KEY (`sso key master` prints a new one)"
