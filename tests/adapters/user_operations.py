"""Users. Each operation in every way."""

from tests.adapters.operation import PASSWORD, Operation, of_user, user_of

USERS = (
    Operation(
        "create a user",
        user_of,
        api=lambda case: case.api(
            "POST", "/users", login=case.login, nick="Ann", password=PASSWORD, email_verified=True
        ),
        document=lambda case: case.apply(
            users=[{"login": case.login, "nick": "Ann", "password": PASSWORD, "email_verified": True}]
        ),
        command=lambda case: f"user add {case.login} --nick Ann --verified --password-stdin",
        console=lambda case: case.form(
            "/console/users/new",
            "/console/users/new",
            login=case.login,
            nick="Ann",
            password=PASSWORD,
            email_verified="1",
        ),
        stdin=f"{PASSWORD}\n",
    ),
    Operation(
        "change a user",
        user_of,
        lambda case: case.user(nick="Ann"),
        api=lambda case: case.api("PATCH", f"/users/{case.user_id}", nick="Eve", tags=["beta"]),
        document=lambda case: case.user(nick="Eve", tags=["beta"]),
        console=lambda case: case.form(of_user(case), of_user(case), nick="Eve", tags="beta"),
    ),
    Operation(
        "disable a user",
        user_of,
        lambda case: case.user(nick="Ann"),
        api=lambda case: case.api("PATCH", f"/users/{case.user_id}", disabled=True),
        document=lambda case: case.user(disabled=True),
        command=lambda case: f"user disable {case.login}",
        console=lambda case: case.form(of_user(case), f"{of_user(case)}/disable"),
    ),
    Operation(
        "enable a user",
        user_of,
        lambda case: case.user(nick="Ann", disabled=True),
        api=lambda case: case.api("PATCH", f"/users/{case.user_id}", disabled=False),
        document=lambda case: case.user(disabled=False),
        command=lambda case: f"user enable {case.login}",
        console=lambda case: case.form(of_user(case), f"{of_user(case)}/enable"),
    ),
    Operation(
        "set a password",
        user_of,
        lambda case: case.user(nick="Ann", password="an old password"),
        api=lambda case: case.api("PATCH", f"/users/{case.user_id}", password=PASSWORD),
        document=lambda case: case.user(password=PASSWORD),
        command=lambda case: f"user set-password {case.login} --password-stdin",
        console=lambda case: case.form(f"{of_user(case)}/security", f"{of_user(case)}/password", password=PASSWORD),
        stdin=f"{PASSWORD}\n",
    ),
    Operation(
        "end the sessions of a user",
        user_of,
        lambda case: case.user(nick="Ann"),
        api=lambda case: case.api("DELETE", f"/users/{case.user_id}/sessions"),
        command=lambda case: f"user end-sessions {case.login}",
        console=lambda case: case.form(f"{of_user(case)}/sign-ins", f"{of_user(case)}/sessions/end"),
    ),
    Operation(
        "reset the second factors of a user",
        user_of,
        lambda case: case.user(nick="Ann", email_2fa=True, email_verified=True),
        api=lambda case: case.api("DELETE", f"/users/{case.user_id}/factors"),
        command=lambda case: f"user reset-2fa {case.login}",
        console=lambda case: case.form(f"{of_user(case)}/security", f"{of_user(case)}/factors/reset"),
    ),
    Operation(
        "delete a user",
        user_of,
        lambda case: case.user(nick="Ann"),
        api=lambda case: case.api("DELETE", f"/users/{case.user_id}"),
        command=lambda case: f"user delete {case.login} --yes",
        console=lambda case: case.deletion(f"{of_user(case)}/delete"),
    ),
)
