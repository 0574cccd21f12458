"""Trees of rows as an edition has them."""

import msgspec

from sankofa.edition.read.row_proofs import RowTree, decode_row_trees


def test_a_tree_of_an_older_version_has_groups_of_256_rows() -> None:
    older = {"count": 300, "groups": b"g" * 64, "starts": [("a", 0), ("b", 6)], "refs": b"", "secret": b"s"}
    tree = decode_row_trees(msgspec.msgpack.encode({"entities": older}))["entities"]
    assert tree == RowTree(300, b"g" * 64, [("a", 0), ("b", 6)], b"", b"s", 256)
