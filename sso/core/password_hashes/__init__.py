"""Password hashes that other programs have made. They are imported, verified at the next login and then replaced."""
