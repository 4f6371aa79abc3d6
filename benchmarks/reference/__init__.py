"""Plain implementations that the library is held against: simple, honest, slow."""
