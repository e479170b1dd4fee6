"""The shapes of the answers of the management API, for the OpenAPI document.

A shape is a ``TypedDict``, or a `RecordShape` where a model of requests has most of the fields. Nothing is built from
them until a client asks for the document. A test compares the answers of a real server with them.
"""
