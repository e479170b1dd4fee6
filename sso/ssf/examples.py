"""An example of each signal, for developers who try their receiver out.

The examples are about a user, a session and addresses that cannot exist, or repeat the status that the stream has, so
a receiver that acts on them changes nothing.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from sso.accounts.assurance import NAMESPACE
from sso.accounts.authentication_context import ACR_VALUES
from sso.signals.event_types import SignalType

USER, SESSION = "0", "example-session"  # the ids of users begin with another digit
OLD_ADDRESS, NEW_ADDRESS = "old@example.invalid", "new@example.invalid"
EXAMPLE = "This is an example"
_REASON = {"reason_admin": {"en": EXAMPLE}}


class ExampleSignal(Struct, frozen=True):
    type: SignalType
    data: dict[str, Any]
    sub: str | None = USER
    sid: str | None = None
    email: str | None = None

    def values(self) -> dict[str, Any]:
        """The columns of the event."""
        return asdict(self)


EXAMPLES: Mapping[str, ExampleSignal] = {
    example.type: example
    for example in (
        ExampleSignal(SignalType.SESSION_REVOKED, _REASON, sid=SESSION),
        ExampleSignal(
            SignalType.CREDENTIAL_CHANGE, {"credential_type": "password", "change_type": "update", **_REASON}
        ),
        ExampleSignal(
            SignalType.ASSURANCE_LEVEL_CHANGE,
            {
                "namespace": NAMESPACE,
                "current_level": ACR_VALUES[1],
                "previous_level": ACR_VALUES[0],
                "change_direction": "increase",
                **_REASON,
            },
            sid=SESSION,
        ),
        ExampleSignal(SignalType.ACCOUNT_DISABLED, {}),
        ExampleSignal(SignalType.ACCOUNT_ENABLED, {}),
        ExampleSignal(SignalType.ACCOUNT_PURGED, {}),
        ExampleSignal(SignalType.IDENTIFIER_CHANGED, {"new-value": NEW_ADDRESS}, email=OLD_ADDRESS),
        # Only a receiver that requests a verification chooses a state (Shared Signals Framework 1.0, section 8.1.4.2).
        ExampleSignal(SignalType.VERIFICATION, {}, sub=None),
        ExampleSignal(SignalType.STREAM_UPDATED, {"status": "enabled", "reason": EXAMPLE}, sub=None),
    )
}


def example_for_stream(event: str, status: str) -> ExampleSignal:
    """Returns the example for a stream that has this status."""
    example = EXAMPLES[event]
    return replace(example, data={**example.data, "status": status}) if "status" in example.data else example
