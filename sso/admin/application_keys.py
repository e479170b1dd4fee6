"""/api/admin/applications/{application_id}/…: the keys, service JWTs and secrets of an application.

A key signs for the application, so the right to manage applications is required, and root at the central application.
"""

import builtins
from typing import Annotated

from msgspec.structs import replace

from sso.admin.answers.permissions import ApplicationKeyJson, DataSecretJson, EmailSecretJson, ServiceJwtJson
from sso.admin.answers.shape import NO_DATA_ANSWER, AnswerShape
from sso.admin.permission_access import AT_CENTRAL_APPLICATION, path_application_id
from sso.admin.request import (
    AdminModel,
    AdminRequest,
    AdminResponse,
    AdminRoute,
    JsonRecord,
    ListQuery,
    record_response,
    slice_response,
)
from sso.admin.rights import AdminRight
from sso.audit import trail
from sso.core.encryption import Keyring
from sso.core.errors import Forbidden, NotFound
from sso.core.field_errors import FieldError
from sso.core.keys import UnusableKey, algorithm_of, load_public
from sso.db.database import Database
from sso.db.transaction import Row, Transaction
from sso.perm.credentials.application_keys import ApplicationKeys
from sso.perm.credentials.service_jwt import ServiceJwts
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.errors import PermissionConflict
from sso.perm.stores.application_keys import add_custom_key, delete_custom_key
from sso.perm.stores.applications import private_key, read_application_row, refuse_removed_application
from sso.perm.stores.email_secret import get_or_create_email_secret
from sso.perm.stores.locks import lock_application
from sso.personal_data.games.queue_store import data_secret
from sso.web.request_model import at_most

MAX_PEM = 16 * 1024


class NewPublicKey(AdminModel):
    public_key: Annotated[str, at_most(MAX_PEM, at_least=1)]  # PEM


class ApplicationKeyResource:
    def __init__(self, database: Database, keyring: Keyring, keys: ApplicationKeys, jwts: ServiceJwts) -> None:
        self._database = database
        self._keyring = keyring
        self._keys = keys
        self._jwts = jwts

    async def list(self, request: AdminRequest) -> AdminResponse:
        """The public keys that verify service JWTs. ``private_key`` says whether the service holds a private key."""
        row = await self._require_application(request)
        held = "held" if row["private_key_sealed"] else "none"
        keys = await self._published(row["application_id"])
        page = slice_response(keys, request.query, lambda key: str(key["kid"]))
        return replace(page, members={**page.members, "private_key": held})

    async def get(self, request: AdminRequest) -> AdminResponse:
        row = await self._require_application(request)
        return record_response(await self._find(row["application_id"], request.path["kid"]))

    async def add(self, request: AdminRequest) -> AdminResponse:
        """Trusts another public key: RSA, EC P-256 or Ed25519."""
        body: NewPublicKey = request.body
        application_id = (await self._require_application(request))["application_id"]

        async def work(tx: Transaction) -> str:
            row = await lock_application(tx, application_id)
            await refuse_removed_application(tx, row)
            return await add_custom_key(tx, request.caller.actor, row, body.public_key)

        try:
            kid = await self._database.transaction(work)
        except UnusableKey as error:
            raise FieldError(("public_key",), str(error)) from None
        return record_response(await self._find(application_id, kid), 201)

    async def remove(self, request: AdminRequest) -> AdminResponse:
        """Stops trusting a key that was added, or that was in a file of a node which is gone."""
        kid, application_id = request.path["kid"], (await self._require_application(request))["application_id"]
        request.check_version(await self._find(application_id, kid))

        async def work(tx: Transaction) -> bool:
            row = await lock_application(tx, application_id)
            return await delete_custom_key(tx, request.caller.actor, row, kid)

        if not await self._database.transaction(work):
            raise PermissionConflict("the key is in service_meta.public_key, or in a file of a node")
        return AdminResponse()

    async def issue_service_jwt(self, request: AdminRequest) -> AdminResponse:
        """Returns a service JWT, which is valid for an hour. The service must hold the application's private key."""
        row = await self._require_application(request)
        application_id, now = row["application_id"], int(self._database.clock.now())
        token = await self._jwts.issue(application_id, private_key(self._keyring, row), now)
        await self._audit(request, "application.service_jwt", row, {"issued": now})
        return AdminResponse({"data": {"application_id": application_id, "service_jwt": token}})

    async def email_secret(self, request: AdminRequest) -> AdminResponse:
        """Returns the secret with which the application sees e-mail addresses of logins; creates it if there is none.

        The secret shows addresses, so the right to view users is required too, and the audit trail says who read it.
        """
        row = await self._require_application(request)
        application_id = row["application_id"]
        request.caller.require(AdminRight.VIEW_USERS)
        secret = await self._database.transaction(
            get_or_create_email_secret, request.caller.actor, self._keyring, application_id
        )
        if secret is None:
            raise NotFound("application not found")
        if row["email_secret_sealed"] is not None:
            await self._audit(request, "application.email_secret.read", row, {"read": True})
        return AdminResponse({"data": {"application_id": application_id, "email_secret": secret}})

    async def data_secret(self, request: AdminRequest) -> AdminResponse:
        """Returns the secret that signs requests about personal data to the application; creates it if there is none.

        The audit trail says who read it.
        """
        row = await self._require_application(request)
        application_id = row["application_id"]
        secret = await data_secret(self._database, self._keyring, application_id, row["data_secret_sealed"])
        await self._audit(request, "application.data_secret.read", row, {"read": True})
        return AdminResponse({"data": {"application_id": application_id, "data_secret": secret}})

    async def _audit(self, request: AdminRequest, operation: str, application: Row, after: JsonRecord) -> None:
        application_id = application["application_id"]
        names = {"project_id": application["project_id"], "application_id": application_id}
        await trail.write(self._database, request.caller.actor, operation, str(application_id), None, after, **names)

    async def _require_application(self, request: AdminRequest) -> Row:
        application_id = path_application_id(request)
        row = await read_application_row(self._database, application_id)
        if row is None:
            raise NotFound("application not found")
        if application_id == CENTRAL_APPLICATION_ID and not request.caller.is_root:
            raise Forbidden(AT_CENTRAL_APPLICATION)
        return row

    async def _published(self, application_id: int) -> builtins.list[JsonRecord]:
        return [
            {"kid": key["id"], "algorithm": algorithm_of(load_public(key["data"])), "public_key": key["data"]}
            for key in await self._keys.published(application_id)
        ]

    async def _find(self, application_id: int, kid: str) -> JsonRecord:
        for key in await self._published(application_id):
            if key["kid"] == kid:
                return key
        raise NotFound("key not found")


def application_key_routes(resource: ApplicationKeyResource) -> tuple[AdminRoute, ...]:
    view, manage = AdminRight.VIEW_APPLICATIONS, AdminRight.MANAGE_APPLICATIONS
    application = "/applications/<application_id>"
    keys, one = f"{application}/keys", f"{application}/keys/<kid>"
    return (
        AdminRoute(
            "GET",
            keys,
            view,
            resource.list,
            ListQuery,
            answer=AnswerShape(ApplicationKeyJson, {"private_key": str}),
            summary="List public keys of an application",
        ),
        AdminRoute(
            "POST",
            keys,
            manage,
            resource.add,
            body=NewPublicKey,
            answer=AnswerShape(ApplicationKeyJson, status=201),
            operation="add_application_key",
            summary="Trust a public key of an application",
            example={"public_key": "-----BEGIN PUBLIC KEY-----\n…\n-----END PUBLIC KEY-----"},
        ),
        AdminRoute(
            "GET",
            one,
            view,
            resource.get,
            answer=AnswerShape(ApplicationKeyJson),
            summary="Get a public key of an application",
        ),
        AdminRoute(
            "DELETE",
            one,
            manage,
            resource.remove,
            answer=NO_DATA_ANSWER,
            operation="remove_application_key",
            summary="Stop trusting a public key of an application",
        ),
        AdminRoute(
            "POST",
            f"{application}/service-jwt",
            manage,
            resource.issue_service_jwt,
            answer=AnswerShape(ServiceJwtJson),
            operation="issue_service_jwt",
            summary="Issue a service JWT of an application",
        ),
        AdminRoute(
            "POST",
            f"{application}/email-secret",
            manage,
            resource.email_secret,
            answer=AnswerShape(EmailSecretJson),
            operation="get_email_secret",
            summary="Get or create the e-mail secret of an application",
        ),
        AdminRoute(
            "POST",
            f"{application}/data-secret",
            manage,
            resource.data_secret,
            answer=AnswerShape(DataSecretJson),
            operation="get_data_secret",
            summary="Get or create the secret of data requests to an application",
        ),
    )
