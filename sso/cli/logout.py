"""sso logout"""

import click

from sso.cli.context import CommandFailure
from sso.cli.echo import echo
from sso.cli.server_choice import chosen_server


@click.command()
@click.pass_context
def command(ctx: click.Context) -> None:
    """Forget the sign-in to the server that --server names (default: that of the last login).

    The tokens of a sign-in with a browser are also revoked at the server. Other sign-ins end on the account page, or
    with `sso user end-sessions`.

    \b
    Example:
      sso --server https://sso.example.com logout
    """
    from sso.cli.logins import LAST, Logins
    from sso.client import ApiCall, ClientError, SsoClient
    from sso.client.call import read_body

    logins = Logins()
    url = logins.url(chosen_server(ctx) or LAST)
    with logins.locked():
        login = logins.remove(url)
    if login is None:
        raise CommandFailure(f"you are not signed in to {url}")
    if login["kind"] == "browser":
        form = {"token": login["refresh_token"], "client_id": login["client_id"]}
        try:
            with SsoClient(url, retries=0) as api:
                api.send(ApiCall("POST", "/proxy/oauth/token/revoke", read_body, form=form, authenticated=False))
        except ClientError as error:
            echo(f"warning: the tokens are forgotten, but could not be revoked: {error}", err=True)
    echo(f"signed out of {url}")
