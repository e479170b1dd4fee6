"""The brand that administrators store: its row, its operations, and the brand in the memory of each worker."""
