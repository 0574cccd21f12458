"""What the builder and the reader of an edition agree on: layout, encodings, keys, and when a row is seen."""
