"""The sections of the document, one file each: how it is read, applied and exported."""
