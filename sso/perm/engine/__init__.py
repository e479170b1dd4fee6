"""The permission engine: pure functions that compute permissions from facts and a time.

The engine has no clock, no store and no request, and imports nothing of the service but ``sso.core``. Read it in this
order: `facts` (the input), `effective_permissions` (the computation), `render` (the output).
"""
