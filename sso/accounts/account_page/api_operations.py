"""Describes the account page and its forms; other packages describe their own."""

from sso.web.api_description import STRING, TEXT, ApiResponse, form, page

TAG = "Account page"
SIGNED_IN = (("sessionCookie",), ())  # without a session, the answer is a redirect to the sign-in
CONFIRMATION = ("current_password", "present_otp", "credential")  # fields that confirm an important change
_PROBLEMS = (403, 422)

OPERATIONS = (
    page("/account", TAG, "Show the account", "done", security=SIGNED_IN),
    form(
        "/account/password",
        TAG,
        "Change the password",
        "current_password",
        "new_password",
        "repeat_password",
        errors=_PROBLEMS,
        security=SIGNED_IN,
    ),
    form("/account/sessions/end", TAG, "End a browser session", "id", security=SIGNED_IN, errors=(403,)),
    form("/account/sessions/end-others", TAG, "Sign out everywhere else", security=SIGNED_IN, errors=(403,)),
    form("/account/games/end", TAG, "Sign out of a game", "ids", security=SIGNED_IN, errors=(403,)),
    form("/account/sites/remove", TAG, "Remove the access of a site", "client_id", security=SIGNED_IN, errors=(403,)),
    form(
        "/account/profile", TAG, "Change the profile", "nick", "lang", "country", errors=_PROBLEMS, security=SIGNED_IN
    ),
    page("/account/history", TAG, "Show what happened to the account", "before", security=SIGNED_IN),
    form("/account/email/verify", TAG, "Send a mail to verify the address", security=SIGNED_IN, errors=(403,)),
    form(
        "/account/email",
        TAG,
        "Ask for another e-mail address",
        "new_email",
        *CONFIRMATION,
        errors=_PROBLEMS,
        security=SIGNED_IN,
    ),
    form("/account/email/cancel", TAG, "Cancel the change of the address", security=SIGNED_IN, errors=(403,)),
    form(
        "/account/email/undo",
        TAG,
        "End the links that undo a change of the address",
        *CONFIRMATION,
        errors=_PROBLEMS,
        security=SIGNED_IN,
    ),
    form(
        "/account/email/notices",
        TAG,
        "Turn mails about sign-ins on or off",
        "enable",
        *CONFIRMATION,
        errors=_PROBLEMS,
        security=SIGNED_IN,
    ),
    page("/account/enrol", TAG, "Show the second factors to choose from", "next", security=SIGNED_IN),
    page("/account/terms", TAG, "Show the terms that the user must accept", "next", security=SIGNED_IN),
    form(
        "/account/terms",
        TAG,
        "Accept the terms",
        "accept_terms",
        "is_of_age",
        "next",
        errors=_PROBLEMS,
        security=SIGNED_IN,
    ),
    page("/account/totp", TAG, "Show the key for an authenticator app", "next", security=SIGNED_IN),
    form(
        "/account/totp",
        TAG,
        "Set up an authenticator app",
        "setup",
        "otp",
        errors=_PROBLEMS,
        security=SIGNED_IN,
        query=("next",),
    ),
    form(
        "/account/totp/confirm",
        TAG,
        "Confirm the sign-in, to set up an app",
        *CONFIRMATION,
        errors=_PROBLEMS,
        security=SIGNED_IN,
        query=("next",),
    ),
    form(
        "/account/totp/code",
        TAG,
        "Send a code by e-mail, to set up an app",
        "setup",
        errors=_PROBLEMS,
        security=SIGNED_IN,
        query=("next",),
    ),
    form(
        "/account/code", TAG, "Send a code by e-mail, for a change", "form", "id", errors=_PROBLEMS, security=SIGNED_IN
    ),
    form("/account/totp/remove", TAG, "Remove the app", *CONFIRMATION, errors=_PROBLEMS, security=SIGNED_IN),
    form(
        "/account/email-2fa",
        TAG,
        "Turn codes by e-mail on or off",
        "enable",
        *CONFIRMATION,
        errors=_PROBLEMS,
        security=SIGNED_IN,
        query=("next",),
    ),
    page("/account/recovery-codes", TAG, "Show new recovery codes", "next", security=SIGNED_IN),
    form(
        "/account/recovery-codes", TAG, "Make new recovery codes", *CONFIRMATION, errors=_PROBLEMS, security=SIGNED_IN
    ),
    form(
        "/account/recovery-codes/download",
        TAG,
        "Download the recovery codes that the page shows",
        "codes",
        errors=(403,),
        security=SIGNED_IN,
        responses={200: ApiResponse("A text file.", STRING, TEXT)},
    ),
    form(
        "/account/passkeys",
        TAG,
        "Add a passkey",
        "name",
        *CONFIRMATION,
        errors=(*_PROBLEMS, 409),
        security=SIGNED_IN,
        query=("next",),
    ),
    form("/account/passkeys/rename", TAG, "Rename a passkey", "id", "name", errors=_PROBLEMS, security=SIGNED_IN),
    form(
        "/account/passkeys/remove",
        TAG,
        "Remove a passkey",
        "id",
        *CONFIRMATION,
        errors=(*_PROBLEMS, 409),
        security=SIGNED_IN,
    ),
)
