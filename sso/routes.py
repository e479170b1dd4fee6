"""Connects the routes and pages of all packages with the services.

This file has more than 300 lines because it names all of them.
"""

from collections.abc import Iterator

from msgspec import Struct
from quart import Blueprint

from sso.accounts.account_page.pages import account_pages
from sso.accounts.account_page.sections import AccountSection, SignedInSections
from sso.accounts.account_page.session_restart import SessionRestart
from sso.accounts.account_page.view import AccountView
from sso.accounts.email_address.link_pages import email_link_pages
from sso.accounts.email_address.pages import email_pages
from sso.accounts.email_address.section import EmailSection
from sso.accounts.history.pages import HistorySection, history_pages
from sso.accounts.impersonation.pages import impersonation_pages
from sso.accounts.impersonation.visitor import ImpersonatedVisits
from sso.accounts.login.code_check import CodeCheck
from sso.accounts.login.flow import CombinedLoginFlows, LoginFlows
from sso.accounts.login.form import LoginForm
from sso.accounts.login.pages import login_pages
from sso.accounts.login.routes import login_routes
from sso.accounts.login.view import LoginCompletion
from sso.accounts.passkeys.pages import passkey_pages
from sso.accounts.passkeys.section import PasskeySection
from sso.accounts.password_reset.pages import password_reset_pages
from sso.accounts.profile.pages import ProfileSection, profile_pages
from sso.accounts.profile.store import ProfileStore
from sso.accounts.recent_authentication import RecentAuthentication
from sso.accounts.registration.challenge import build_challenge
from sso.accounts.registration.pages import registration_pages
from sso.accounts.second_factor.pages import TotpEnrolments, second_factor_pages
from sso.accounts.second_factor.qr_codes import QrCodes
from sso.accounts.second_factor.recovery_code_pages import recovery_code_pages
from sso.accounts.second_factor.recovery_codes import SecondFactorSection
from sso.accounts.second_factor.shown_codes import ShownCodes
from sso.accounts.terms.acceptance_store import AcceptanceStore
from sso.accounts.terms.pages import terms_pages
from sso.accounts.visitor import Visitor
from sso.admin.routes import admin_routes
from sso.console.confirmation import ConsoleConfirmation
from sso.console.playground.pages import demo_playground_pages
from sso.console.routes import ConsoleLink, console_routes
from sso.console.system_pages import InstallationFindings
from sso.console.view import ConsoleView
from sso.core.findings import Report
from sso.db.rate_limit import RateLimiter
from sso.demo.mail_pages import demo_mail_pages
from sso.demo.mailbox import DemoMailbox
from sso.demo.mark import is_demo
from sso.device.pages import device_pages
from sso.device.routes import device_routes
from sso.doctor.checks import check as check_installation
from sso.documentation.routes import documentation_routes
from sso.documentation.site import DocumentationSite
from sso.gsid.pages import game_pages
from sso.gsid.routes import game_routes
from sso.gsid.sockets import game_sockets
from sso.health import Health, health_routes
from sso.keys.routes import key_routes
from sso.mail.smtp import MAIL_FOLDER
from sso.oauth.logout_pages import logout_pages
from sso.oauth.pages import authorize_pages
from sso.oauth.registration.routes import registration_routes, resource_metadata_routes
from sso.oauth.routes import discovery_routes, oauth_routes
from sso.openapi.routes import OpenApiDocument, openapi_routes
from sso.perm.authzen.routes import authzen_routes
from sso.perm.routes import exchange_routes, permission_routes
from sso.personal_data.closed_account import KeepTickets
from sso.personal_data.games.routes import data_answer_routes
from sso.personal_data.keep_pages import ClosedAccountPage, keep_pages
from sso.personal_data.pages import DataSection, personal_data_pages
from sso.players.account_pages import DeviceKeySection, device_key_pages
from sso.players.conflict_login import ConflictLoginFlows
from sso.players.conflict_pages import conflict_pages
from sso.players.routes import player_routes
from sso.services import Services
from sso.ssf.routes import signal_routes
from sso.upstream.account_pages import IdentitiesSection, identity_pages
from sso.upstream.pages import upstream_pages
from sso.upstream.recent_login import LinkLoginFlows
from sso.upstream.tickets.routes import ticket_routes
from sso.upstream.tickets.sign_in import TicketSignIn
from sso.upstream.view import UpstreamView
from sso.web import brand, language_switcher

RESETS_DIVISOR = 6  # a network may request a sixth as many password reset links as it may have failed logins


class PageServices(Struct, frozen=True):
    """The objects that several pages share."""

    visitor: Visitor
    impersonated: ImpersonatedVisits
    recent: RecentAuthentication
    login_flows: LoginFlows
    conflicts: ConflictLoginFlows
    login_form: LoginForm
    completion: LoginCompletion
    tickets: KeepTickets
    closed: ClosedAccountPage
    shown_codes: ShownCodes


def all_routes(services: Services, health: Health) -> Iterator[Blueprint]:
    pages = _page_services(services)
    account = _account_view(services, pages)
    yield health_routes(health, services.database, shared_database=services.settings.database_url is not None)
    yield brand.brand_routes(services.brand)
    yield language_switcher.switcher_routes()
    if services.settings.shows_docs:
        yield documentation_routes(DocumentationSite(services.settings.docs_dir))
    yield from _api_routes(services)
    yield from _login_pages(services, pages)
    yield from _account_pages(services, pages, account)
    yield from _upstream_pages(services, pages, account)
    yield from _site_and_game_pages(services, pages)
    if is_demo(services.settings):
        yield demo_mail_pages(DemoMailbox(services.settings.data_dir / MAIL_FOLDER))
        yield demo_playground_pages()
    can_invite = services.settings.registration != "closed"
    yield from console_routes(
        _console_view(services, pages),
        _findings(services),
        services.brand,
        can_invite=can_invite,
        deletion_days=services.settings.deletion_days,
        client_registration=services.settings.client_registration,
    )


def _page_services(s: Services) -> PageServices:
    passkeys, clock = s.passkeys.authentication, s.database.clock
    recent = RecentAuthentication(s.password_login, s.second_factors, s.sessions, clock, passkeys)
    tickets = KeepTickets(s.keyring, s.users, clock)
    flows = CombinedLoginFlows(s.game_login.login_flows, s.oauth.login_flows)
    conflicts = ConflictLoginFlows(recent, s.upstream.conflicts, s.game_login.login_flows)
    login_flows = CombinedLoginFlows(flows, LinkLoginFlows(recent, s.upstream.pending, flows), conflicts)
    impersonated, can_register = ImpersonatedVisits(s.impersonations), s.settings.registration == "open"
    return PageServices(
        visitor=Visitor(s.sessions, impersonated),
        impersonated=impersonated,
        recent=recent,
        login_flows=login_flows,
        conflicts=conflicts,
        login_form=LoginForm(passkeys, s.upstream.provider_list, login_flows, can_register=can_register),
        completion=LoginCompletion(
            s.sessions,
            s.second_factors,
            s.second_factor_requirement,
            s.known_devices,
            s.sign_in_notices,
            s.settings.browser_ttl_s,
            clock,
            s.settings.appeal_url or "",
        ),
        tickets=tickets,
        closed=ClosedAccountPage(tickets, s.second_factors, login_flows),
        shown_codes=ShownCodes(s.keyring, clock),
    )


def _account_view(s: Services, pages: PageServices) -> AccountView:
    sections: list[AccountSection] = [
        EmailSection(s.email_verification, s.email_change, s.email_undo),
        ProfileSection(),
        SecondFactorSection(s.recovery_codes),
        PasskeySection(s.passkeys.store, s.passkeys.registration, s.passkeys.authentication),
        SignedInSections(s.sessions, s.signed_in_games, s.oauth.connected_sites),
        IdentitiesSection(s.upstream.links, s.upstream.provider_list),
        DeviceKeySection(s.players.links),
        HistorySection(s.history),
        DataSection(s.deletion, s.game_data.exports),
        ConsoleLink(s.management),
    ]
    clock = s.database.clock
    return AccountView(pages.visitor, s.password_login, pages.recent, pages.shown_codes, sections, clock)


def _console_view(s: Services, pages: PageServices) -> ConsoleView:
    confirmation = ConsoleConfirmation(pages.recent, s.second_factors, s.passkeys.authentication)
    requires_second_factor = s.settings.require_2fa != "off"
    return ConsoleView(pages.visitor, s.management, confirmation, requires_second_factor=requires_second_factor)


def _findings(s: Services) -> InstallationFindings:
    """The findings of ``sso doctor``."""

    def check() -> Report:
        return Report(check_installation(s.settings, s.database.dsn, "The service"))

    return InstallationFindings(check)


def _api_routes(s: Services) -> Iterator[Blueprint]:
    yield key_routes(s.keys)
    yield permission_routes(s.permissions, s.keys.find_pem)
    yield exchange_routes(s.permissions.exchange_jwt)
    codes = CodeCheck(s.password_login, s.second_factors)
    yield authzen_routes(s.permissions, s.settings.base_url)
    yield login_routes(
        s.password_login,
        codes,
        s.session_tokens,
        s.known_devices,
        s.authentication_data,
        s.applications,
        s.sign_in_notices,
        s.used_factor,
        s.signed_in_games,
    )
    limiter, issuer = s.password_login.rate_limiter, s.authentication_data
    upstream = s.upstream
    tickets = TicketSignIn(
        s.database, upstream.links, upstream.tickets, limiter, codes, s.used_factor, upstream.conflicts
    )
    yield ticket_routes(tickets, s.user_jwts, s.known_devices, issuer, s.applications, s.sign_in_notices)
    yield oauth_routes(
        s.oauth.token_endpoint,
        s.oauth.revocation,
        s.oauth.token_store,
        s.oauth.user_jwt_exchange,
        s.oauth.assertions,
        s.oauth.introspection,
        s.oauth.pushed_requests,
        s.oauth.dpop_proofs,
        s.device_login.grant,
        s.oauth.token_exchange,
        s.oauth.recorder,
    )
    yield device_routes(s.device_login.authorization, s.oauth.assertions, s.oauth.recorder)
    yield discovery_routes(s.keys, s.settings.base_url, s.settings.client_registration)
    yield registration_routes(s.oauth.registration)
    yield resource_metadata_routes(s.settings.base_url)
    yield signal_routes(s.signals, s.settings.base_url, s.service_tokens.scopes_of)
    yield game_routes(s.game_login)
    yield player_routes(s.players)
    yield data_answer_routes(s.game_data.queue)
    yield game_sockets(s.game_login)
    yield admin_routes(s.management)
    yield openapi_routes(OpenApiDocument(s.brand.name, lambda: s.management.routes), s.settings.base_url)


def _login_pages(s: Services, pages: PageServices) -> Iterator[Blueprint]:
    yield terms_pages(pages.visitor, s.terms, pages.login_flows, AcceptanceStore(s.database))
    yield login_pages(
        pages.visitor,
        s.password_login,
        s.second_factors,
        s.sessions,
        s.known_devices,
        pages.login_flows,
        pages.login_form,
        pages.completion,
        s.passkeys.authentication,
        pages.closed,
    )
    yield keep_pages(
        pages.closed,
        pages.tickets,
        s.deletion,
        s.password_login,
        s.second_factors,
        pages.login_flows,
        pages.completion,
    )
    challenge = build_challenge(s.settings, s.database, s.keyring)
    yield registration_pages(s.registration, challenge, pages.visitor, pages.login_flows, pages.completion)
    yield password_reset_pages(
        s.reset_requests,
        s.password_reset,
        s.password_login,
        s.second_factors,
        s.passkeys.authentication,
        s.known_devices,
        pages.login_flows,
        pages.completion,
        pages.closed,
        RateLimiter(s.database, "password reset", -(-s.settings.rate_login // RESETS_DIVISOR)),
    )


def _account_pages(s: Services, pages: PageServices, account: AccountView) -> Iterator[Blueprint]:
    shown, passkeys = pages.shown_codes, s.passkeys
    restarts = SessionRestart(s.sessions, s.known_devices, s.second_factor_requirement, s.settings.browser_ttl_s)
    enrolments = TotpEnrolments(s.keyring, s.database.clock)
    yield account_pages(
        account, restarts, s.users, s.password_changes, s.sessions, s.signed_in_games, s.oauth.connected_sites
    )
    yield impersonation_pages(s.impersonations, pages.impersonated)
    yield profile_pages(account, ProfileStore(s.database))
    yield history_pages(account, s.history)
    yield personal_data_pages(account, s.database, s.deletion, s.game_data.exports)
    yield second_factor_pages(
        account,
        restarts,
        s.second_factors,
        s.second_factor_changes,
        enrolments,
        QrCodes(s.database),
        shown,
        pages.completion,
        passkeys.authentication,
    )
    yield recovery_code_pages(account, s.recovery_codes, shown)
    yield email_pages(account, s.email_verification, s.email_change, s.email_undo, s.sign_in_notices)
    yield email_link_pages(s.email_verification, s.email_change, s.email_undo, s.database.clock)
    yield passkey_pages(account, restarts, passkeys.store, passkeys.registration, passkeys.changes, shown)


def _upstream_pages(s: Services, pages: PageServices, account: AccountView) -> Iterator[Blueprint]:
    upstream = s.upstream
    view = UpstreamView(upstream.sign_in, pages.login_flows, pages.login_form, upstream.rate)
    yield upstream_pages(
        view,
        upstream.sign_in,
        upstream.pending,
        upstream.registration,
        pages.completion,
        pages.visitor,
        pages.recent,
        pages.closed,
    )
    yield identity_pages(account, view, upstream.sign_in, upstream.links)
    yield device_key_pages(account, s.players.links)
    yield conflict_pages(pages.conflicts, s.players.merges, s.players.merge_mails, pages.visitor)


def _site_and_game_pages(s: Services, pages: PageServices) -> Iterator[Blueprint]:
    yield authorize_pages(
        s.oauth.authorize,
        s.oauth.pushed_requests,
        pages.visitor,
        pages.login_form,
        s.oauth.authorize_rate,
        s.oauth.recorder,
    )
    yield logout_pages(s.oauth.logout, pages.visitor, s.sessions)
    yield game_pages(s.game_login.confirmation, pages.visitor)
    yield device_pages(s.device_login.sessions, pages.visitor, s.device_login.user_code_rate)
