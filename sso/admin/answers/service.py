"""The shapes of clients, identity providers, keys, game sessions, webhooks, the state and the system."""

from typing import Any, NotRequired

from typing_extensions import TypedDict

from sso.admin.answers.shape import RecordShape
from sso.admin.answers.users import ChangeEventJson, Time
from sso.oauth.clients.record import ClientChanges
from sso.upstream.provider_record import ProviderChanges


class ClientSecretJson(TypedDict):
    id: str
    expires_at: int


class _ClientJson(TypedDict):
    client_secret: NotRequired[str]
    secrets: list[ClientSecretJson]
    created: Time
    jwks: dict[str, Any] | None
    registered_by: str


CLIENT = RecordShape("Client", ClientChanges, _ClientJson)


class RegistrationTokenJson(TypedDict):
    id: str
    uses: int
    uses_left: int
    created: Time
    expires: Time


class NewRegistrationTokenJson(RegistrationTokenJson):
    token: str


class _ProviderJson(TypedDict):
    secret_id: str | None
    callback_url: str


PROVIDER = RecordShape("IdentityProvider", ProviderChanges, _ProviderJson, ("client_secret",))


class LinkedUsersJson(TypedDict):
    linked: int
    without_other_sign_in: int


class ConnectionStepJson(TypedDict):
    title: str
    works: bool
    found: str
    field: str


class ConnectionTestJson(TypedDict):
    works: bool
    steps: list[ConnectionStepJson]


class SigningKeyJson(TypedDict):
    kid: str
    algorithm: str
    side: bool
    state: str
    created: Time
    signs_from: Time
    retires: Time | None
    retired: Time | None


class GameSessionJson(TypedDict):
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


class ViolationJson(TypedDict):
    id: str
    created: Time
    gsid: NotRequired[str]
    address: str
    reason: str
    expected: str
    found: str


class WebhookDeliveryJson(TypedDict):
    failing: bool
    failing_since: NotRequired[Time]
    tries: NotRequired[int]
    next_try: NotRequired[Time]
    problem: NotRequired[str]


class WebhookJson(TypedDict):
    id: str
    url: str
    events: list[str]
    disabled: bool
    created: Time
    delivery: WebhookDeliveryJson


class SignalStreamJson(TypedDict):
    id: str
    client_id: str
    method: str
    url: str
    events: list[str]
    description: str
    status: str
    reason: str
    created: Time
    failing_since: Time | None
    problem: str
    last_delivery: Time | None
    waiting: int


class RecordedRequestJson(TypedDict):
    id: str
    at: Time
    caller: str
    proof: str
    endpoint: str
    http_method: str
    authorization: str
    content_type: str
    dpop: bool
    parameters: dict[str, str]
    http_status: int
    kind: str
    answer: dict[str, str]
    duration_ms: float


class RecordingJson(TypedDict):
    recorded_until: Time


class FailedEventJson(TypedDict):
    id: str
    event: ChangeEventJson
    failed_at: Time
    tries: int
    problem: str
    retrying: bool


class RetriedEventCountJson(TypedDict):
    events: int


class StateDocumentJson(TypedDict):
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


class RecordDifferenceJson(TypedDict):
    operation: str
    target: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class AppliedDocumentJson(TypedDict):
    created: int
    changed: int
    unchanged: int
    changes: NotRequired[list[RecordDifferenceJson]]


class DatabaseStateJson(TypedDict):
    version: str
    size: int
    max_connections: int
    connections: int
    schema: str


class MailQueueJson(TypedDict):
    waiting: int
    tried: int
    oldest_s: int


class NodeJson(TypedDict):
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


class ProblemJson(TypedDict):
    name: str
    detail: str
    advice: str


class SystemJson(TypedDict):
    version: str
    expected_schema: str
    database: DatabaseStateJson
    mail: MailQueueJson
    nodes: list[NodeJson]
    problems: list[ProblemJson]


class LatencyJson(TypedDict):
    p50: float | None
    p95: float | None


class FunnelRowJson(TypedDict):
    application_id: int
    name: str
    store: str
    registered: int
    opened: int
    signed_in: int
    confirmed: int
    delivered: int
    closed: int


class FiguresJson(TypedDict):
    minutes: dict[str, list[float]]
    latency_ms: LatencyJson
    totals: dict[str, int]
    funnel: list[FunnelRowJson]
