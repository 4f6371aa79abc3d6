"""`Skipped`: why a row cannot be measured here."""


class Skipped(Exception):  # noqa: N818 - it is no error
    """Raised by a row that lacks something, with a sentence that says what."""
