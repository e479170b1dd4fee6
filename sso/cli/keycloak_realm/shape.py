"""The types of what is read of a realm export. Other members may be anything."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from sso.web.request_model import field_error


def _storable(text: str) -> str:
    """JSON can have parts of characters, too."""
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("must be Unicode text without a NUL character")
    return text


def _attribute_values(attributes: dict[str, Any]) -> dict[str, Any]:
    """Keycloak exports strings, and reads numbers and flags as well."""
    for name, value in attributes.items():
        _storable(f"{name}{value}")
        if isinstance(value, list | dict):
            raise ValueError(f"{name[:80]!r} must be a string")  # noqa: TRY004 - pydantic turns no other error into ours
    return attributes


Text = Annotated[str, AfterValidator(_storable)]
Name = Annotated[Text, Field(min_length=1)]
Names = list[Text]
Attributes = Annotated[dict[str, Any], AfterValidator(_attribute_values)]


class _Shape(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", alias_generator=to_camel, defer_build=True)


class _NamedShape(_Shape):
    name: Name


class _CompositesShape(_Shape):
    realm: Names | None = None
    client: dict[Text, Names] | None = None


class _RoleShape(_NamedShape):
    description: Text | None = None
    composites: _CompositesShape | None = None
    attributes: dict[str, Any] | None = None


class _RolesShape(_Shape):
    realm: list[_RoleShape] | None = None
    client: dict[Text, list[_RoleShape]] | None = None


class _GroupShape(_NamedShape):
    attributes: dict[str, Any] | None = None
    realm_roles: Names | None = None
    client_roles: dict[Text, Names] | None = None
    sub_groups: list["_GroupShape"] | None = None


class _ClientShape(_Shape):
    client_id: Name
    name: Text | None = None
    protocol: Text | None = None
    root_url: Text | None = None
    secret: Text | None = None
    client_authenticator_type: Text | None = None
    redirect_uris: Names | None = None
    web_origins: Names | None = None
    enabled: bool | None = None
    bearer_only: bool | None = None
    public_client: bool | None = None
    consent_required: bool | None = None
    standard_flow_enabled: bool | None = None
    implicit_flow_enabled: bool | None = None
    direct_access_grants_enabled: bool | None = None
    service_accounts_enabled: bool | None = None
    authorization_services_enabled: bool | None = None
    protocol_mappers: list[_NamedShape] | None = None
    attributes: Attributes | None = None


class _RealmShape(_Shape):
    realm: Text | None = None
    default_role: _NamedShape | None = None
    components: dict[str, Any] | None = None
    clients: list[_ClientShape] | None = None
    roles: _RolesShape | None = None
    groups: list[_GroupShape] | None = None
    client_scopes: list[_NamedShape] | None = None


def check_shape(realm: dict[str, Any]) -> None:
    """Raises FieldError, which names the members of other types and what is expected."""
    try:
        _RealmShape.model_validate(realm)
    except ValidationError as error:
        raise field_error(error, root="realm", too_many="too many members have other types than Keycloak's") from None
