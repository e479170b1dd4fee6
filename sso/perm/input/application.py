"""Applications in requests: the record with its ``settings`` and ``service_meta`` (§2.3)."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, FailFast, Field, PlainValidator, WithJsonSchema

from sso.core.field_errors import FieldPath
from sso.core.outgoing_url import EXPECTED, is_outgoing_url
from sso.perm.input.field_types import ApplicationId, Domains, RequiredUrl, Tags, Url, Word
from sso.perm.input.model import InputModel, read_record
from sso.web.request_model import JsonObject, at_most

MAX_NAME = 32
MAX_KEY = 16 * 1024
MAX_SOURCES = 100

_NAME = re.compile(r"[A-Za-z0-9 _.]{0,32}")


def _check_service_name(value: object) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError(f"must be at most {MAX_NAME} letters, digits, spaces, underscores or dots")
    return value


def _not_private(key: str) -> str:
    if "PRIVATE KEY" in key:
        raise ValueError("is a private key")
    return key


class ServiceMeta(InputModel):
    name: Annotated[
        str, PlainValidator(_check_service_name), WithJsonSchema({"type": "string", "pattern": f"^{_NAME.pattern}$"})
    ] = ""
    description: str = ""
    doc: Url = ""
    url: Url = ""
    env: Annotated[str, at_most(64)] = ""
    tags: Tags = Field(default_factory=list)
    public_key: Annotated[str, at_most(MAX_KEY), AfterValidator(_not_private)] = ""
    private_key: Annotated[str, at_most(MAX_KEY)] = ""
    config_schema: JsonObject = Field(default_factory=dict)  # stored as it is: never fetched from, never run


def _check_outgoing(url: str) -> str:
    if not is_outgoing_url(url, allow_http=True):
        raise ValueError(EXPECTED)
    return url


SourceUrl = Annotated[RequiredUrl, AfterValidator(_check_outgoing)]


class DataSource(InputModel):
    fetch: SourceUrl = ""
    remove: SourceUrl = ""


class Gdpr(InputModel):
    char_sources: Annotated[list[SourceUrl], FailFast(), Field(max_length=MAX_SOURCES)] = Field(default_factory=list)
    data_sources: Annotated[list[DataSource], FailFast(), Field(max_length=MAX_SOURCES)] = Field(default_factory=list)


def source_urls(gdpr: Mapping[str, Any]) -> Iterator[tuple[FieldPath, str]]:
    """Yields the addresses in ``settings.gdpr`` with the paths of their fields."""
    for number, url in enumerate(gdpr.get("char_sources", ())):
        yield ("char_sources", number), url
    for number, source in enumerate(gdpr.get("data_sources", ())):
        for name in ("fetch", "remove"):
            if name in source:
                yield ("data_sources", number, name), source[name]


class ApplicationSettings(InputModel):
    gdpr: Gdpr = Field(default_factory=Gdpr)
    restricted_domains: Domains = Field(default_factory=list)


class ApplicationFields(InputModel):
    model_config = ConfigDict(extra="ignore")  # callers warn about unknown fields of the record itself

    name: Word = ""
    description: str = ""
    # null and an empty string stand for no project.
    project_id: Annotated[Annotated[str, at_most(64)] | None, AfterValidator(lambda value: value or None)] = None
    settings: ApplicationSettings = Field(default_factory=ApplicationSettings)
    service_meta: ServiceMeta = Field(default_factory=ServiceMeta)


class ApplicationRecord(ApplicationFields):
    """An application in a document."""

    application_id: ApplicationId
    assertions: Any = None  # see `read_assertions`


def read_application_fields(
    data: object, path: FieldPath = (), model: type[ApplicationFields] = ApplicationFields
) -> tuple[dict[str, Any], list[str]]:
    """The fields of the record that were given, ready to store, and warnings about unknown fields in them."""
    return read_record(model, data, path)
