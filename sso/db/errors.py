"""What can go wrong with the database, told apart by what the caller can do about it."""


class DatabaseError(Exception):
    pass


class Unavailable(DatabaseError):
    """The database cannot be reached, is too busy or refuses to write: try again in a moment."""


class DeadlineExceeded(Unavailable):
    """It did not answer in time. Whether what it was asked has happened is not known."""


class TransactionConflict(DatabaseError):
    """Two transactions got in each other's way and this one was rolled back: run it again."""


class UniqueViolation(DatabaseError):
    """What must be unique is there already; ``constraint`` says what."""

    def __init__(self, constraint: str) -> None:
        super().__init__(constraint)
        self.constraint = constraint
