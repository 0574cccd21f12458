"""The datasets of an edition: their keys, their rows and the order of the rows."""
