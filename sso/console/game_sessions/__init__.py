"""The section "Game sessions": the logins of games that are in progress."""
