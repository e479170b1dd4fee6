"""The routes of the console: one blueprint for each section."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from quart import Blueprint

from sso.accounts.session_store import Session
from sso.admin.own_records import read_own_records
from sso.admin.wiring import ManagementApi
from sso.console.applications.editor_pages import editor_pages
from sso.console.applications.holder_pages import holder_pages
from sso.console.applications.pages import application_pages
from sso.console.audit.pages import audit_pages
from sso.console.branding.client_pages import client_branding_pages
from sso.console.branding.pages import branding_pages
from sso.console.clients.pages import client_pages
from sso.console.clients.registration_pages import registration_pages
from sso.console.data_request_pages import data_request_pages
from sso.console.explorer.pages import explorer_pages
from sso.console.game_session_pages import game_session_pages
from sso.console.identity_providers.pages import identity_provider_pages
from sso.console.overview_pages import overview_pages
from sso.console.playground.pages import playground_pages
from sso.console.projects.group_pages import group_pages
from sso.console.projects.member_pages import member_pages
from sso.console.projects.pages import project_pages
from sso.console.projects.service_pages import service_pages
from sso.console.search_pages import search_pages
from sso.console.signing_key_pages import signing_key_pages
from sso.console.state.pages import state_pages
from sso.console.system_pages import InstallationFindings, system_pages
from sso.console.users.ban_pages import user_ban_pages
from sso.console.users.detail_pages import user_detail_pages
from sso.console.users.impersonation_pages import user_impersonation_pages
from sso.console.users.merge_pages import user_merge_pages
from sso.console.users.pages import user_list_pages
from sso.console.users.role_pages import user_role_pages
from sso.console.users.suggestion_pages import suggestion_pages
from sso.console.view import ConsoleView
from sso.console.webhook_pages import webhook_pages
from sso.core.brand import CurrentBrand
from sso.oauth.registration.registration import RegistrationMode
from sso.web.request import client_address


def console_routes(
    console: ConsoleView,
    findings: InstallationFindings,
    brand: CurrentBrand,
    *,
    can_invite: bool,
    deletion_days: int,
    client_registration: RegistrationMode,
) -> Iterator[Blueprint]:
    users = user_list_pages(console, can_invite=can_invite)
    user_detail_pages(console, users, deletion_days)
    user_role_pages(console, users)
    user_ban_pages(console, users)
    user_merge_pages(console, users)
    user_impersonation_pages(console, users)
    suggestion_pages(console, users)
    yield users
    applications = application_pages(console)
    for add_pages in (editor_pages, holder_pages):
        add_pages(console, applications)
    yield applications
    projects = project_pages(console)
    for add_pages in (member_pages, group_pages, service_pages):
        add_pages(console, projects)
    yield projects
    yield explorer_pages(console)
    yield playground_pages(console)
    clients = client_pages(console)
    registration_pages(console, clients, client_registration)
    client_branding_pages(console, clients, brand)
    yield clients
    yield branding_pages(console, brand)
    yield identity_provider_pages(console)
    yield signing_key_pages(console)
    yield webhook_pages(console)
    yield state_pages(console)
    yield game_session_pages(console)
    yield data_request_pages(console)
    yield audit_pages(console)
    yield system_pages(console, findings)
    overview = overview_pages(console)
    search_pages(console, overview)
    yield overview


class ConsoleLink:
    """The link to the console on the account page of users whom the console admits."""

    def __init__(self, management: ManagementApi) -> None:
        self._management = management

    async def values(self, session: Session, now: datetime) -> Mapping[str, Any]:
        caller = await self._management.authenticator.browser_caller(session.user.user_id, client_address())
        with self._management.limit(caller):
            is_admitted = caller.rights or await read_own_records(self._management.visibility, caller, {})
        return {"console_link": bool(is_admitted)}
