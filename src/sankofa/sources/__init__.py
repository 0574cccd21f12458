"""One file per adapter: a raw file as its publisher ships it becomes canonical records.

`base.py` defines adapters, `registry.py` the sources that use them. Every other module here declares adapters
and is found automatically.
"""
