"""The section "Audit trail": entries with their differences, and the undo of changes."""
