"""The management API, /api/admin/: everything that an operator can do with commands, for programs and the console."""
