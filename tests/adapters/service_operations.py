"""OAuth clients and identity providers. Each operation in every way."""

from tests.adapters.operation import REDIRECT, SECRET, Operation, client, provider, saved_client, saved_provider

SERVICE = (
    Operation(
        "create a client",
        client,
        api=lambda case: case.api(
            "POST",
            "/clients",
            client_id=case.client_id,
            name="Shop",
            profile="strict",
            redirect_uris=[REDIRECT],
            client_secret=SECRET,
        ),
        document=saved_client,
        command=lambda case: (
            f"client add {case.client_id} --name Shop --profile strict --redirect-uri {REDIRECT} --secret-stdin"
        ),
        stdin=f"{SECRET}\n",
    ),
    Operation(
        "change a client",
        client,
        saved_client,
        api=lambda case: case.api("PATCH", f"/clients/{case.client_id}", redirect_uris=[REDIRECT, f"{REDIRECT}/2"]),
        document=lambda case: case.apply(
            clients=[{"client_id": case.client_id, "redirect_uris": [REDIRECT, f"{REDIRECT}/2"]}]
        ),
        command=lambda case: f"client set {case.client_id} --redirect-uri {REDIRECT} --redirect-uri {REDIRECT}/2",
        console=lambda case: case.form(
            f"/console/clients/{case.client_id}",
            f"/console/clients/{case.client_id}",
            redirect_uris=f"{REDIRECT}\n{REDIRECT}/2",
        ),
    ),
    Operation(
        "disable a client",
        client,
        saved_client,
        api=lambda case: case.api("PATCH", f"/clients/{case.client_id}", disabled=True),
        command=lambda case: f"client disable {case.client_id}",
        console=lambda case: case.form(
            f"/console/clients/{case.client_id}", f"/console/clients/{case.client_id}/disable"
        ),
    ),
    Operation(
        "create an identity provider",
        provider,
        api=lambda case: case.api("POST", "/identity-providers", id=case.provider_id, kind="steam"),
        document=saved_provider,
        command=lambda case: f"idp add {case.provider_id} --kind steam",
    ),
    Operation(
        "delete an identity provider",
        provider,
        saved_provider,
        api=lambda case: case.api("DELETE", f"/identity-providers/{case.provider_id}"),
        command=lambda case: f"idp delete {case.provider_id} --yes",
        console=lambda case: case.deletion(f"/console/identity-providers/{case.provider_id}/delete"),
    ),
)
