"""Recorded requests: what a client sends and gets, without secrets, for the developer who looks for a mistake.

An administrator turns the recording of one client on, for an hour. While no client is recorded, a request costs nothing
but one comparison.
"""
