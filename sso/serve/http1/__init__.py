"""The lane: HTTP/1.x as Trio likes it, one task a connection and one buffer an answer.

What is no plain HTTP/1.x request is handed to hypercorn, with what was read of it.
"""
