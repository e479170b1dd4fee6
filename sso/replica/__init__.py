"""A replica of the permissions of one application: it reads a copy, follows the changes, and answers from memory."""
