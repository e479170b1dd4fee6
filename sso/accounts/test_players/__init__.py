"""Test players: accounts that force an outcome of a sign-in, for developers of games and sites.

They are real accounts in a real state, such as a ban. Only what no state of an account says, a slow sign-in and mails
that have always expired, is in ``hooks.py``.
"""
