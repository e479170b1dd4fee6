"""Users and how they prove who they are: the login operation, second factors, browser sessions, pages."""
