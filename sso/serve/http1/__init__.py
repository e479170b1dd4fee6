"""The built-in HTTP/1.x server: one task per connection, and one buffer per response where possible.

WebSocket connections are handed to hypercorn, together with the bytes that were already read.
"""
