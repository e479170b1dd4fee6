"""What a browser must do before the service sends a mail for it, so that programs cannot have many mails sent."""

import importlib
from collections.abc import Callable, Mapping
from typing import Protocol

from markupsafe import Markup

from sso.accounts.registration.proof_of_work import ProofOfWork
from sso.config import ConfigError, Settings
from sso.core.encryption import Keyring
from sso.core.language import Text
from sso.core.net import Address
from sso.db.database import Database

OFF, PROOF_OF_WORK = "off", "proof-of-work"


class RegistrationChallenge(Protocol):
    """A challenge adds fields to a form and checks them when the form is sent."""

    async def issue(self, form: Mapping[str, str]) -> Markup:
        """Returns the HTML to insert in the form.

        ``form`` has the fields of a form that was rejected for another reason, and is empty at first. A challenge that
        is still open may be shown again.
        """

    async def verify(self, form: Mapping[str, str], address: Address) -> Text | None:
        """Returns None if the challenge is met, else what the user must do. A solution must be accepted only once."""


class NoChallenge:
    async def issue(self, form: Mapping[str, str]) -> Markup:
        return Markup()

    async def verify(self, form: Mapping[str, str], address: Address) -> Text | None:
        return None


def build_challenge(settings: Settings, database: Database, keyring: Keyring) -> RegistrationChallenge:
    """Returns the challenge that SSO_REGISTRATION_CHALLENGE selects."""
    match settings.registration_challenge:
        case "off":
            return NoChallenge()
        case "proof-of-work":
            return ProofOfWork(database, keyring, settings.registration_work_bits)
        case _:
            return challenge_factory(settings)(settings)


def challenge_factory(settings: Settings) -> Callable[[Settings], RegistrationChallenge]:
    """Returns the operator's own factory. Raises ConfigError if it cannot be imported."""
    module_name, _, name = settings.registration_challenge.partition(":")
    try:
        factory = getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"SSO_REGISTRATION_CHALLENGE: cannot import {module_name}:{name}: {error}") from None
    if not callable(factory):
        raise ConfigError(f"SSO_REGISTRATION_CHALLENGE: {module_name}:{name} is not callable")
    found: Callable[[Settings], RegistrationChallenge] = factory
    return found


def check_challenge_setting(settings: Settings) -> None:
    """Raises ConfigError if SSO_REGISTRATION_CHALLENGE names a factory that cannot be imported."""
    if settings.registration_challenge not in (OFF, PROOF_OF_WORK):
        challenge_factory(settings)
