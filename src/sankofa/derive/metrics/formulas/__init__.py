"""One small function per metric. A metric is found by being in a file here."""
