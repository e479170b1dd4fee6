"""The section "System": nodes, versions, the database, the queue of mails, and findings of ``sso doctor``."""
