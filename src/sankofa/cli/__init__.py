"""The command line, and the assembly of the surfaces into one application."""
