"""All records of the service, by kind."""

from sso.cli.records.api import CommandApi
from sso.cli.records.applications import Applications
from sso.cli.records.clients import Clients
from sso.cli.records.groups import Groups
from sso.cli.records.invitations import Invitations
from sso.cli.records.keys import Keys
from sso.cli.records.permissions import Audit, Permissions, Violations
from sso.cli.records.projects import Projects
from sso.cli.records.providers import Providers
from sso.cli.records.roles import Roles
from sso.cli.records.state import State
from sso.cli.records.users import Users
from sso.cli.records.webhooks import Webhooks


class ServiceRecords:
    def __init__(self, api: CommandApi) -> None:
        self.users = Users(api)
        self.invitations = Invitations(api)
        self.violations = Violations(api)
        self.clients = Clients(api)
        self.projects = Projects(api)
        self.applications = Applications(api)
        self.roles = Roles(api)
        self.groups = Groups(api, self.projects)
        self.providers = Providers(api)
        self.keys = Keys(api)
        self.webhooks = Webhooks(api)
        self.audit = Audit(api, self.users, self.projects)
        self.permissions = Permissions(api, self.users)
        self.state = State(api)
