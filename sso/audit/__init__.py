"""The audit trail: who changed what, when and from where."""
