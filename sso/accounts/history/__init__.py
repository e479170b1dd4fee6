"""The security history of an account: what happened, when, and from where."""
