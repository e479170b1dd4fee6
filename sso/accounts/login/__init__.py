"""Login with a password: the login operation, the login pages, their flows and their rate limits."""
