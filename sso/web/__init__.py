"""The edge, once for all: input gate, client address, error rendering, headers, pages. Knows no endpoint."""
