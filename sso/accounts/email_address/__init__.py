"""The e-mail address of an account: verifying it and changing it. The address is also the login."""
