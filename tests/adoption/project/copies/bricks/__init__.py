"""A copy of another package, which calls itself by its own name."""
