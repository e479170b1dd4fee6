"""Describes the pages of sign-in with other providers."""

from sso.accounts.account_page.api_operations import CONFIRMATION, SIGNED_IN, TAG
from sso.accounts.api_operations import PAGES_TAG
from sso.upstream.recent_login import LINK_PATH
from sso.web.api_description import form, page

_PROBLEMS = (401, 403, 404, 409)
_FORM_PROBLEMS = (403, 404, 409, 422)

OPERATIONS = (
    page("/login/upstream/<provider_id>", PAGES_TAG, "Go to another provider", "next", errors=_PROBLEMS),
    page(
        "/login/upstream/<provider_id>/callback",
        PAGES_TAG,
        "Return from another provider",
        "state",
        "code",
        "error",
        errors=_PROBLEMS,
    ),
    page("/login/identity", PAGES_TAG, "Ask what to do with an identity without an account", errors=(404,)),
    form("/login/identity/create", PAGES_TAG, "Create an account for the identity", "nick", errors=_FORM_PROBLEMS),
    page(LINK_PATH, PAGES_TAG, "Ask whether to link the identity", errors=(404,)),
    form(LINK_PATH, PAGES_TAG, "Link the identity with the account", errors=(403, 404, 409)),
    form(
        "/account/identities/link",
        TAG,
        "Link another provider",
        "provider",
        *CONFIRMATION,
        errors=_FORM_PROBLEMS,
        security=SIGNED_IN,
    ),
    form(
        "/account/identities/unlink",
        TAG,
        "Unlink another provider",
        "id",
        *CONFIRMATION,
        errors=_FORM_PROBLEMS,
        security=SIGNED_IN,
    ),
)
