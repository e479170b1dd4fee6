"""One sentence for each field of requests and answers, by the name of the field.

A name means the same everywhere, in requests as in answers. Where it does not, the key is ``Model.field``; and a model
may have a text of its own with ``Field(description=…)``. Only the OpenAPI document imports this package.
"""

from sso.openapi.field_texts.examples import EXAMPLES
from sso.openapi.field_texts.of_models import OF_MODELS
from sso.openapi.field_texts.permissions import PERMISSIONS
from sso.openapi.field_texts.protocols import PROTOCOLS
from sso.openapi.field_texts.records import RECORDS
from sso.openapi.field_texts.service import SERVICE

FIELDS: dict[str, str] = RECORDS | SERVICE | PERMISSIONS | PROTOCOLS | OF_MODELS

__all__ = ["EXAMPLES", "FIELDS"]
