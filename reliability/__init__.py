"""How driftwolfe stands up to what goes wrong: hostile files, kills, long runs."""
