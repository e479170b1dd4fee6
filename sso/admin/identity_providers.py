"""/api/admin/identity-providers: lists, adds, changes, removes and tests the services with which players sign in."""

from msgspec.structs import asdict, replace

from sso.admin.answers.service import PROVIDER, ConnectionTestJson, LinkedUsersJson
from sso.admin.answers.shape import AnswerShape
from sso.admin.caller import AdminCaller
from sso.admin.record_resource import RecordKind, RecordResource
from sso.admin.request import AdminRequest, AdminResponse, AdminRoute, JsonRecord, SearchQuery
from sso.admin.rights import AdminRight
from sso.core.errors import ApiError, Forbidden
from sso.core.field_errors import FieldError
from sso.db.database import Database
from sso.db.rate_limit import RateLimiter
from sso.db.sorted_pages import Page, cut_page
from sso.db.transaction import Transaction
from sso.perm.errors import TooManyAdminRequests
from sso.upstream.model import IdentityProvider
from sso.upstream.provider_operations import ProviderOperations, provider_id_taken
from sso.upstream.provider_record import NewProvider, ProviderChanges, provider_json
from sso.upstream.provider_store import count_links, lock_provider
from sso.upstream.sign_in import callback_url
from sso.upstream.wiring import Upstream

TESTS_PER_MINUTE = 10  # for one caller, because each sends several requests to another service
# A provider can sign in as every user who is linked to it, and the other fields decide which service that is, and whom
# it may speak for. So these are the fields that a caller without the role root may change.
HARMLESS_FIELDS = frozenset(("name", "position", "secret_id"))


class ProviderResource(RecordResource[IdentityProvider]):
    variable = "provider_id"
    kind = RecordKind(
        "identity provider",
        "/identity-providers",
        "/identity-providers/<provider_id>",
        AdminRight.VIEW_CLIENTS,
        AdminRight.MANAGE_CLIENTS,
        NewProvider,
        {"id": "steam", "kind": "steam"},
        ProviderChanges,
        {"position": 1},
        {"secret_id": "", "callback_url": ""},
        details={
            "list": "Returns the providers in the order of their ids.",
            "delete": "Removes the provider and all links to it.",
        },
        record=PROVIDER,
        answers={"get": AnswerShape(PROVIDER, {"users": LinkedUsersJson})},
    )

    def __init__(
        self,
        database: Database,
        upstream: Upstream,
        operations: ProviderOperations,
        base_url: str,
    ) -> None:
        super().__init__(database)
        self._store = upstream.providers
        self._operations = operations
        self._base_url = base_url
        self._test = upstream.connection_test
        self._test_rate = RateLimiter(database, "connection test", TESTS_PER_MINUTE)

    async def page(self, request: AdminRequest) -> Page[IdentityProvider]:
        query: SearchQuery = request.query
        found = [one for one in await self._store.list() if query.matches(one.provider_id, one.name)]
        following = sorted((one for one in found if one.provider_id > query.after), key=lambda one: one.provider_id)
        return cut_page(following, query.limit, lambda one: one.provider_id)

    async def read(self, key: str) -> IdentityProvider | None:
        return await self._store.get(key)

    async def lock(self, tx: Transaction, key: str) -> IdentityProvider | None:
        return await lock_provider(tx, key)

    def json(self, record: IdentityProvider) -> JsonRecord:
        address = "" if record.is_for_tickets else callback_url(self._base_url, record.provider_id)
        return provider_json(record) | {"callback_url": address}

    def taken(self) -> ApiError:
        return provider_id_taken()

    async def get(self, request: AdminRequest) -> AdminResponse:
        """Returns the provider, and how many users would be affected if it were removed."""
        response = await super().get(request)
        linked, stranded = await count_links(self.database, self.path_key(request))
        users = {"linked": linked, "without_other_sign_in": stranded}
        return replace(response, members={**response.members, "users": users})

    async def prepare_new(self, request: AdminRequest) -> NewProvider:
        require_root(request.caller, "to add an identity provider")
        record: NewProvider = request.body
        return record

    async def prepare_changes(self, request: AdminRequest) -> ProviderChanges:
        changes: ProviderChanges = request.body
        if changes.id not in (None, self.path_key(request)):
            raise FieldError(("id",), "cannot be changed")
        return changes

    async def insert(self, tx: Transaction, request: AdminRequest, prepared: NewProvider) -> IdentityProvider:
        return await self._operations.create(tx, request.caller.actor, prepared, prepared.undo_of)

    async def save(
        self, tx: Transaction, request: AdminRequest, record: IdentityProvider, prepared: ProviderChanges
    ) -> bool:
        return await self._operations.change(tx, request.caller.actor, record, prepared)

    async def remove(self, tx: Transaction, request: AdminRequest, record: IdentityProvider) -> None:
        await self._operations.delete(tx, request.caller.actor, record)

    def authorize_change(self, request: AdminRequest, before: IdentityProvider, after: IdentityProvider) -> None:
        require_rights_of_provider(request.caller, self.json(before), self.json(after))

    async def test(self, request: AdminRequest) -> AdminResponse:
        """Asks the provider as a sign-in would: `works`, and `steps` with what was found, or the field that is wrong.

        Nothing is changed. A caller has 10 tests per minute.
        """
        provider = self.existing(await self.read(self.path_key(request)))
        actor = request.caller.actor
        if wait_s := await self._test_rate.add_subject(f"{actor.user_id} {actor.service_id}"):
            raise TooManyAdminRequests(wait_s)
        secret = self._store.secret(provider)
        steps = await self._test.run(provider, secret, callback_url(self._base_url, provider.provider_id))
        works = all(step.works for step in steps)
        return AdminResponse({"data": {"works": works, "steps": [asdict(step) for step in steps]}})

    def routes(self) -> tuple[AdminRoute, ...]:
        path, summary = "/identity-providers/<provider_id>/test", "Test the connection to an identity provider"
        answer = AnswerShape(ConnectionTestJson)
        test = AdminRoute("POST", path, self.kind.manage, self.test, answer=answer, summary=summary)
        return (*super().routes(), test)


def require_rights_of_provider(caller: AdminCaller, before: JsonRecord, after: JsonRecord) -> None:
    """Raises Forbidden unless the caller may make this change."""
    changed = sorted(name for name in after if after[name] != before[name] and name not in HARMLESS_FIELDS)
    if after["disabled"] and "disabled" in changed:  # takes something away, as a deletion does
        changed.remove("disabled")
    if changed:
        require_root(caller, f"to change {changed[0]}")


def require_root(caller: AdminCaller, action: str) -> None:
    if not caller.is_root:
        raise Forbidden(f"the role root is required {action}: the provider signs in its users")
