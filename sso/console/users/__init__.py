"""The section "Users": search, create, invite; and the pages of a user."""
