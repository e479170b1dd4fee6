"""Tickets that stores give to games, with which players sign in without a browser."""
