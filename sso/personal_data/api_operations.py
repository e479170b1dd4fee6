"""Describes the forms that export, delete and keep an account, and the link to which games send data."""

from sso.accounts.account_page.api_operations import CONFIRMATION, SIGNED_IN, TAG
from sso.accounts.api_operations import LOGIN_TAG, PAGES_TAG
from sso.web.api_description import JSON_BODY, OBJECT, ApiBody, ApiOperation, ApiParameter, ApiResponse, form, ok, page

OPERATIONS = (
    page("/account/export", TAG, "Go to the export on the account page"),
    form(
        "/account/export",
        TAG,
        "Download the data of the account",
        *CONFIRMATION,
        "games",
        errors=(403, 422),
        security=SIGNED_IN,
        responses={200: ApiResponse("A JSON file, or a ZIP file with the data of games.", OBJECT)},
    ),
    form("/account/delete", TAG, "Close the account", *CONFIRMATION, errors=(403, 409, 422), security=SIGNED_IN),
    ApiOperation(
        "POST",
        "/proxy/api/data/{link}",
        LOGIN_TAG,
        "Send the data of a user",
        {200: ok("The data is part of the export.", example={"status": "OK"})},
        "A game that has answered 202 to a request for the data of a user sends it to `callback_url` of that request, "
        "as JSON of at most 5 MB. The link works once, for three days. An invalid body is refused, and the link stays "
        "valid. 404 if the link was used or has expired.",
        (ApiParameter("link", "The last part of `callback_url`.", "path", required=True),),
        ApiBody(OBJECT, (JSON_BODY,), {"data": {"gold": 7, "friends": ["1002"]}}),
        errors=(400, 404, 413),
    ),
    form("/login/keep", PAGES_TAG, "Keep a closed account", "ticket", "otp", "next", errors=(403, 404, 410)),
)
