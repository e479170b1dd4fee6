"""Registration of new users by page: by a verified e-mail address, or by an invitation."""
