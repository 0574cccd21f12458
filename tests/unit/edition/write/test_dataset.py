"""Datasets are built in the order that their declarations ask for, whatever they are called."""

from collections.abc import Iterator

import pytest

from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import Dataset, KeyRows, dataset, datasets, in_order


def build(context: BuildContext) -> Iterator[KeyRows]:
    yield from ()


def declared(**needs: tuple[str, ...]) -> list[Dataset]:
    return [Dataset(kind, None, build, needs=needed) for kind, needed in needs.items()]


def test_a_dataset_is_built_after_those_it_needs_and_else_as_declared() -> None:
    ordered = in_order(declared(a=("c",), b=(), c=("d",), d=(), e=("a", "b")))
    assert [one.kind for one in ordered] == ["d", "c", "a", "b", "e"]


def test_a_need_that_no_dataset_is_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"dataset a: needs 'metrics', which no dataset is"):
        in_order(declared(a=("metrics",)))


def test_datasets_that_need_each_other_are_an_error() -> None:
    with pytest.raises(TypeError, match=r"datasets need each other: a -> b -> c -> a"):
        in_order(declared(a=("b",), b=("c",), c=("a",)))


def test_a_kind_declared_twice_is_an_error() -> None:
    taken = datasets()[0].kind
    with pytest.raises(TypeError, match=f"dataset {taken}: declared twice"):
        dataset(taken, None)(build)


def test_renaming_every_kind_leaves_the_order_of_the_build_as_it_is() -> None:
    def renamed(kind: str) -> str:
        return kind[::-1]

    others = in_order(
        one._replace(
            kind=renamed(one.kind),
            needs=tuple(map(renamed, one.needs)),
            tallies=tuple(map(renamed, one.tallies)),
        )
        for one in datasets()
    )
    assert [one.build for one in others] == [one.build for one in datasets()]
