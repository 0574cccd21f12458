"""One file per adapter: a raw file as its publisher ships it becomes canonical records.

`base.py` says what an adapter is, `registry.py` which sources use them. Every other module here
declares one adapter, and is found by being here.
"""
