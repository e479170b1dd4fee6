"""Checks of the records in requests. Each module reads one kind of record and raises FieldError for a wrong one.

Flat records are pydantic models (`model`). Conditions and trees of rules are checked by hand.
"""
