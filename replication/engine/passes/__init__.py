"""The engine of passes: `plan` says what is looked at, `reading` looks through it, `duty` takes it to its end."""
