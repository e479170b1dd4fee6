"""Listening sockets, the processes that share them, and what those processes speak."""
