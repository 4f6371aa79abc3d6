"""What is kept on disk: files written whole or not at all, archives of arrays and settings."""

from driftwolfe.storage.archive import Archive, read_archive, write_archive

__all__ = ["Archive", "read_archive", "write_archive"]
