"""The management API, /api/admin/: programs manage users and read the audit trail."""
