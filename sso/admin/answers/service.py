"""The shapes of clients, identity providers, keys, game sessions, webhooks, the state and the system."""

from typing import Any, NotRequired

from typing_extensions import TypedDict

from sso.admin.answers.shape import RecordShape
from sso.admin.answers.users import ChangeEvent, Time
from sso.oauth.clients.record import ClientChanges
from sso.upstream.provider_record import ProviderChanges


class ClientSecret(TypedDict):
    id: str
    expires_at: int


class _ClientFields(TypedDict):
    client_secret: NotRequired[str]
    secrets: list[ClientSecret]
    created: Time
    jwks: dict[str, Any] | None


CLIENT = RecordShape("Client", ClientChanges, _ClientFields)


class _ProviderFields(TypedDict):
    secret_id: str | None
    callback_url: str


PROVIDER = RecordShape("IdentityProvider", ProviderChanges, _ProviderFields, ("client_secret",))


class LinkedUsers(TypedDict):
    linked: int
    without_other_sign_in: int


class ConnectionStep(TypedDict):
    title: str
    works: bool
    found: str
    field: str


class ConnectionTest(TypedDict):
    works: bool
    steps: list[ConnectionStep]


class SigningKey(TypedDict):
    kid: str
    algorithm: str
    side: bool
    state: str
    created: Time
    signs_from: Time
    retires: Time | None
    retired: Time | None


class GameSession(TypedDict):
    gsid: NotRequired[str]
    id: str
    stage: str
    created: Time
    address: str
    application_id: int | None
    gapp_id: int | None
    distr: str
    user_id: str | None
    age: int
    ends: Time
    polled: bool
    socket: bool


class Violation(TypedDict):
    id: str
    created: Time
    gsid: NotRequired[str]
    address: str
    reason: str
    expected: str
    found: str


class WebhookDelivery(TypedDict):
    failing: bool
    failing_since: NotRequired[Time]
    tries: NotRequired[int]
    next_try: NotRequired[Time]
    problem: NotRequired[str]


class Webhook(TypedDict):
    id: str
    url: str
    events: list[str]
    disabled: bool
    created: Time
    delivery: WebhookDelivery


class FailedEvent(TypedDict):
    id: str
    event: ChangeEvent
    failed_at: Time
    tries: int
    problem: str
    retrying: bool


class RetriedEventCount(TypedDict):
    events: int


class StateDocument(TypedDict):
    """A document of `sso apply` with the sections that were asked for."""

    users: NotRequired[list[dict[str, Any]]]
    clients: NotRequired[list[dict[str, Any]]]
    identity_providers: NotRequired[list[dict[str, Any]]]
    applications: NotRequired[list[dict[str, Any]]]
    schemas: NotRequired[dict[str, Any]]
    roles: NotRequired[dict[str, Any]]
    projects: NotRequired[list[dict[str, Any]]]
    permissions: NotRequired[list[dict[str, Any]]]
    groups: NotRequired[list[dict[str, Any]]]
    memberships: NotRequired[list[dict[str, Any]]]


class RecordDifference(TypedDict):
    operation: str
    target: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class AppliedDocument(TypedDict):
    created: int
    changed: int
    unchanged: int
    changes: NotRequired[list[RecordDifference]]


class DatabaseState(TypedDict):
    version: str
    size: int
    max_connections: int
    connections: int
    schema: str


class MailQueue(TypedDict):
    waiting: int
    tried: int
    oldest_s: int


class Node(TypedDict):
    name: str
    is_silent: bool
    seen_s_ago: int
    up_s: int
    workers: int
    expected_workers: int
    held_polls: int
    sockets: int
    clock_offset_s: float
    hosts: list[str]
    versions: list[str]
    schema_versions: list[str]
    notes: list[str]


class Problem(TypedDict):
    name: str
    detail: str
    advice: str


class System(TypedDict):
    version: str
    expected_schema: str
    database: DatabaseState
    mail: MailQueue
    nodes: list[Node]
    problems: list[Problem]


class Latency(TypedDict):
    p50: float | None
    p95: float | None


class FunnelRow(TypedDict):
    application_id: int
    name: str
    store: str
    registered: int
    opened: int
    signed_in: int
    confirmed: int
    delivered: int
    closed: int


class Figures(TypedDict):
    minutes: dict[str, list[float]]
    latency_ms: Latency
    totals: dict[str, int]
    funnel: list[FunnelRow]
