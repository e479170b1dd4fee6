"""The operations on permissions: each exists once, for the specification's endpoints and the management API.

An operation checks the rights of its caller and makes its change in one transaction, with an audit entry. Adapters read
the input and render the result. Documents of desired state use the functions of the stores, in a transaction of theirs.
"""
