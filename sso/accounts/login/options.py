"""The request fields that select what a login returns, for the login operation and for game sessions."""

from typing import Annotated, Any, ClassVar

from pydantic import AliasChoices, Field, StringConstraints, model_validator
from werkzeug.datastructures import Headers

from sso.accounts.model import LoginOptions
from sso.accounts.ports import ApplicationDirectory
from sso.core.field_errors import FieldError
from sso.core.keys import UnusableKey, load_rsa_public
from sso.core.net import Address, private_networks
from sso.web.request_model import AppId, Flag, RequestModel, Strings

ShortText = Annotated[str, StringConstraints(max_length=256)]


class LoginOptionFields(RequestModel):
    repeatable: ClassVar[frozenset[str]] = frozenset({"fixed_ips"})

    factor: ShortText = Field("", description="Device factor; without it, no JWT is issued.")
    distr: ShortText = Field("", description="Distributor tag.")
    jwt_public_key: Annotated[str, StringConstraints(max_length=4096)] = Field(
        "", description="RSA public key to embed in the JWT."
    )
    app_id: AppId = Field(0, description="Application that the user logs in to; 0 means none.")
    gapp_id: AppId = Field(0, description="Game application; 0 means none.")
    service_jwt: str = Field("", description="Deprecated: use the header Service-Jwt.")
    with_email: ShortText = Field("", description="Secret of the application; the response then has the login.")
    nojwt: Flag = Field(False, description="1: no JWT.")
    short_token: Flag = Field(False, description="1: one token, for five minutes and this address.")
    fixed_ip: Flag = Field(False, description="1: the JWT works only from this address.")
    fixed_ips: Strings = Field(
        default_factory=list,
        max_length=64,
        validation_alias=AliasChoices("fixed_ips[]", "fixed_ips"),
        description="Further private networks for fixed_ip.",
    )
    meta: Flag = Field(False, description="1: the response has meta.")

    @model_validator(mode="before")
    @classmethod
    def _one_name_for_fixed_ips(cls, fields: dict[str, Any]) -> dict[str, Any]:
        if "fixed_ips" in fields and "fixed_ips[]" in fields:
            raise ValueError("expected fixed_ips[] or fixed_ips, not both")
        return fields


async def parse_login_options(
    fields: LoginOptionFields, headers: Headers, peer: Address, claimed: str | None, applications: ApplicationDirectory
) -> LoginOptions:
    """Validates the fields and the headers Signature and Service-Jwt.

    ``claimed`` is the client's address according to a server that acts for it; the server signs it with its key.
    """
    check_jwt_public_key(fields.jwt_public_key)
    given = {"app_id": fields.app_id, "gapp_id": fields.gapp_id}
    application_ids = tuple(number for number in given.values() if number)
    app_id = fields.app_id
    if service_jwt := headers.get("Service-Jwt", fields.service_jwt):
        application_ids = await applications.service_applications(service_jwt, application_ids, peer)
        app_id = fields.app_id if fields.app_id or fields.gapp_id else application_ids[0]
    for name, number in given.items():
        if number:
            await applications.require_existing(name, number)
    client = await applications.client_address(peer, claimed, headers.get("Signature"), application_ids)
    return LoginOptions(
        address=client,
        factor=fields.factor,
        jwt_public_key=fields.jwt_public_key,
        distr=fields.distr,
        nojwt=fields.nojwt,
        short_token=fields.short_token,
        fixed_ips=allowed_networks(fields.fixed_ip, fields.fixed_ips, client),
        meta=fields.meta,
        meta_given="meta" in fields.model_fields_set,
        app_id=app_id,
        gapp_id=fields.gapp_id,
        with_email=bool(fields.with_email) and await applications.is_email_secret(app_id, fields.with_email),
    )


def allowed_networks(fixed_ip: bool, fixed_ips: list[str], client: Address) -> tuple[str, ...]:
    """Returns the networks that the user JWT works from: the client's address, private networks, or both."""
    try:
        networks = private_networks(fixed_ips)
    except ValueError as error:
        raise FieldError(("fixed_ips[]",), str(error)) from None
    own = (f"{client}/{client.max_prefixlen}",) if fixed_ip else ()
    return own + tuple(str(network) for network in networks)


def check_jwt_public_key(text: str) -> None:
    if text:
        try:
            load_rsa_public(text)
        except UnusableKey as error:
            raise FieldError(("jwt_public_key",), str(error)) from None
