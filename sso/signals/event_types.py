"""The types of events that a stream can have (CAEP, RISC and SSF). The database has the short names."""

from enum import StrEnum

_CAEP = "https://schemas.openid.net/secevent/caep/event-type/"
_RISC = "https://schemas.openid.net/secevent/risc/event-type/"
_SSF = "https://schemas.openid.net/secevent/ssf/event-type/"


class SignalType(StrEnum):
    SESSION_REVOKED = "session-revoked"
    CREDENTIAL_CHANGE = "credential-change"
    ASSURANCE_LEVEL_CHANGE = "assurance-level-change"
    ACCOUNT_DISABLED = "account-disabled"
    ACCOUNT_ENABLED = "account-enabled"
    ACCOUNT_PURGED = "account-purged"
    IDENTIFIER_CHANGED = "identifier-changed"
    VERIFICATION = "verification"  # of a stream, which a receiver has requested
    STREAM_UPDATED = "stream-updated"  # the status of a stream has changed


_CAEP_TYPES = (SignalType.SESSION_REVOKED, SignalType.CREDENTIAL_CHANGE, SignalType.ASSURANCE_LEVEL_CHANGE)
STREAM_TYPES = (SignalType.VERIFICATION, SignalType.STREAM_UPDATED)


def _prefix(signal: SignalType) -> str:
    if signal in STREAM_TYPES:
        return _SSF
    return _CAEP if signal in _CAEP_TYPES else _RISC


EVENT_URIS = {signal: f"{_prefix(signal)}{signal}" for signal in SignalType}
# What a receiver can request. It gets verifications and updates of its stream in any case.
REQUESTABLE = {uri: signal for signal, uri in EVENT_URIS.items() if signal not in STREAM_TYPES}


def is_caep(signal: str) -> bool:
    """Returns whether the event has the members that all events of CAEP have."""
    return signal in _CAEP_TYPES
