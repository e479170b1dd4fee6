"""What only the demo has: an installation whose administrator has a public password, and a page with its mails."""
