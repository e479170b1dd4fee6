"""The supervisor and its processes, their listening sockets, and the HTTP servers."""
