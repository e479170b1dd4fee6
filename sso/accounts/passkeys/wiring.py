"""Builds the services of passkeys."""

from msgspec import Struct

from sso.accounts.login.rate_limit import LoginRateLimiter
from sso.accounts.passkeys.authentication import PasskeyAuthentication
from sso.accounts.passkeys.challenges import PasskeyChallenges
from sso.accounts.passkeys.changes import PasskeyChanges
from sso.accounts.passkeys.registration import PasskeyRegistration
from sso.accounts.passkeys.relying_party import RelyingParty
from sso.accounts.passkeys.store import PasskeyStore
from sso.accounts.second_factor.changes import SecondFactorChanges
from sso.core.brand import CurrentBrand
from sso.core.encryption import Keyring
from sso.db.database import Database
from sso.mail.outbox import Outbox


class Passkeys(Struct, frozen=True):
    store: PasskeyStore
    authentication: PasskeyAuthentication
    registration: PasskeyRegistration
    changes: PasskeyChanges


def build_passkeys(
    base_url: str,
    database: Database,
    keyring: Keyring,
    outbox: Outbox,
    factor_changes: SecondFactorChanges,
    rate_limiter: LoginRateLimiter,
    brand: CurrentBrand,
) -> Passkeys:
    relying_party = RelyingParty.from_base_url(base_url, brand)
    challenges = PasskeyChallenges(keyring, database.clock)
    store = PasskeyStore(database)
    changes = PasskeyChanges(database, factor_changes)
    return Passkeys(
        store,
        PasskeyAuthentication(relying_party, challenges, store, rate_limiter, database, outbox, brand),
        PasskeyRegistration(relying_party, challenges, store, changes, rate_limiter),
        changes,
    )
