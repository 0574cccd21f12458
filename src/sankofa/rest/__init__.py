"""The HTTP surface: turns requests into calls of operations, and results into bytes."""
