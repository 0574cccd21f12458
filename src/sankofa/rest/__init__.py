"""The HTTP surface: a thin dispatch from a request to an operation and back to bytes."""
