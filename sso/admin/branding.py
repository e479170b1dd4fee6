"""/api/admin/brand: the brand of the service. Settings have precedence, and ``fixed`` names what they decide."""

from collections.abc import Sequence

from typing_extensions import TypedDict

from sso.admin.answers.shape import AnswerShape
from sso.admin.request import AdminRequest, AdminResponse, AdminRoute, JsonRecord, etag
from sso.admin.rights import AdminRight
from sso.branding.operations import save_brand
from sso.branding.record import BrandChanges
from sso.branding.store import StoredBrand, lock_brand, read_brand
from sso.db.database import Database
from sso.db.transaction import Transaction

PATH = "/brand"


class BrandJson(TypedDict):
    name: str
    accent: str
    logo: str
    signin_text: str
    support_url: str
    privacy_url: str
    terms_url: str
    fixed: list[str]


class BrandResource:
    def __init__(self, database: Database, fixed: Sequence[str]) -> None:
        self._database = database
        self._fixed = fixed

    async def get(self, request: AdminRequest) -> AdminResponse:
        """Returns the stored brand. ``logo`` is the id of an uploaded image."""
        return self._respond(await read_brand(self._database))

    async def change(self, request: AdminRequest) -> AdminResponse:
        """Changes the fields of the request; an empty text removes a value. ``logo`` is a data URI.

        All workers show the change within a second or so.
        """
        body: BrandChanges = request.body

        async def work(tx: Transaction) -> StoredBrand:
            before = await lock_brand(tx)
            request.check_version(self._json(before))
            changes = body.model_dump(exclude_unset=True, exclude_none=True)
            return await save_brand(tx, request.caller.actor, before, changes, self._fixed)

        return self._respond(await self._database.transaction(work))

    def _json(self, brand: StoredBrand) -> JsonRecord:
        return {**brand.texts, "fixed": list(self._fixed)}

    def _respond(self, brand: StoredBrand) -> AdminResponse:
        record = self._json(brand)
        return AdminResponse({"data": record}, 200, {"ETag": etag(record)})


def brand_routes(resource: BrandResource) -> tuple[AdminRoute, ...]:
    view, manage = AdminRight.VIEW_CLIENTS, AdminRight.MANAGE_CLIENTS
    example = {"name": "Iron Foundry", "accent": "#0f766e"}
    return (
        AdminRoute("GET", PATH, view, resource.get, answer=AnswerShape(BrandJson), summary="Get the brand"),
        AdminRoute(
            "PATCH",
            PATH,
            manage,
            resource.change,
            body=BrandChanges,
            answer=AnswerShape(BrandJson),
            example=example,
            fixed_fields={"fixed": ""},
            summary="Change the brand",
        ),
    )
