"""Describes the forms that export and delete an account, and that keep a closed one."""

from sso.accounts.account_page.api_operations import CONFIRMATION, SIGNED_IN, TAG
from sso.accounts.api_operations import PAGES_TAG
from sso.web.api_description import OBJECT, ApiResponse, form, page

OPERATIONS = (
    page("/account/export", TAG, "Go to the export on the account page"),
    form(
        "/account/export",
        TAG,
        "Download the data of the account",
        *CONFIRMATION,
        errors=(403, 422),
        security=SIGNED_IN,
        responses={200: ApiResponse("A JSON file.", OBJECT)},
    ),
    form("/account/delete", TAG, "Close the account", *CONFIRMATION, errors=(403, 409, 422), security=SIGNED_IN),
    form("/login/keep", PAGES_TAG, "Keep a closed account", "ticket", "otp", "next", errors=(403, 404, 410)),
)
