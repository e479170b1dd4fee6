"""The account page: what it shows and the forms that change it."""
