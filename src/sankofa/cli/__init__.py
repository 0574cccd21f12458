"""The command line, and the putting together of the surfaces."""
