"""`bench loop` calls every route, so that one that blocks the event loop shows."""

import re

from bench.loop import page_addresses, questions
from sankofa.operations.contract import endpoints
from sankofa.web.view import Routes, pages

ISSUER = "DC46AF1B1AAA424B58D1368176"


def test_every_page_has_a_question() -> None:
    addresses = page_addresses(ISSUER)
    assert addresses.keys() == pages().keys()
    routes = Routes()
    for path, address in addresses.items():
        assert "{" not in address, "say in bench/loop.py what this page is asked for"
        match = routes.find(address.partition("?")[0])
        assert match is not None, address
        assert match[0].path == path, address


def test_every_endpoint_has_a_question() -> None:
    paths = [question.path.partition("?")[0] for question in questions(ISSUER, ("edition",))]
    for operation in endpoints():
        pattern = re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(operation.path)))
        assert any(pattern.fullmatch(path) for path in paths), operation.path
