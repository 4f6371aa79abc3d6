"""What is kept on disk: files written whole or not at all, archives of arrays and settings."""

from driftwolfe.storage.archive import (
    Archive,
    Described,
    Header,
    enough_memory,
    read_archive,
    read_header,
    write_archive,
)

__all__ = [
    "Archive",
    "Described",
    "Header",
    "enough_memory",
    "read_archive",
    "read_header",
    "write_archive",
]
