"""A tree of rows is taken from the file of the last publication only if it is whole and of these rows."""

from pathlib import Path

import msgspec

from sankofa.edition.read.row_trees import RowTree, decode_row_trees, store_tree, stored_tree

STATE, OTHER = b"s" * 32, b"o" * 32


def test_a_stored_tree_is_believed_if_it_is_whole_and_of_the_same_rows(tmp_path: Path) -> None:
    path = tmp_path / "metrics.tree"
    tree = RowTree(3, b"g" * 32, [("key", 0)], b"refs", b"secret")
    assert stored_tree(path, STATE) is None
    store_tree(path, STATE, tree)
    assert stored_tree(path, STATE) == tree
    assert stored_tree(path, OTHER) is None
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert stored_tree(path, STATE) is None
    store_tree(path, b"", tree)
    assert stored_tree(path, b"") is None


def test_a_tree_of_an_older_version_has_groups_of_256_rows() -> None:
    older = {"count": 300, "groups": b"g" * 64, "starts": [("a", 0), ("b", 6)], "refs": b"", "secret": b"s"}
    tree = decode_row_trees(msgspec.msgpack.encode({"entities": older}))["entities"]
    assert tree == RowTree(300, b"g" * 64, [("a", 0), ("b", 6)], b"", b"s", 256)
