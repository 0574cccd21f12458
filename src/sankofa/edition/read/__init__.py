"""An edition as servers read it."""
