"""The commands, by what they work on; each file is loaded when one of its commands is called."""
