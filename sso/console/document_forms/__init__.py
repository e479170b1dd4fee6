"""Schemas, roles and conditions as fields of forms, and back: what the fields cannot show is kept in hidden ones.

The functions are pure. A document that becomes fields and is read again is the same document.
"""
