"""Charts as SVG, drawn by the server: they need no script, print, and can be downloaded."""
