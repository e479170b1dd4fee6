"""The terms that people accept before they use an account, and their age."""
