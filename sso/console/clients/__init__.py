"""The section "OAuth clients": a wizard that ends in a quickstart, secrets, and identity providers."""
