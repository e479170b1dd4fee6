"""All operations that change records. A new operation is a row of one of these tables.

A way that an operation does not have is missing: a document deletes nothing, and the specification has no clients.
"""

from tests.adapters.application_operations import APPLICATIONS
from tests.adapters.project_operations import PROJECTS
from tests.adapters.service_operations import SERVICE
from tests.adapters.user_operations import USERS

OPERATIONS = (*USERS, *SERVICE, *PROJECTS, *APPLICATIONS)
