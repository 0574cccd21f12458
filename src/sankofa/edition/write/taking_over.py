"""Which datasets and tables are taken over from an edition before, because they would come out the same."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sankofa.edition.write.build_record import BuildRecord, DatasetRecord, PartitionRecord, TableRecord
from sankofa.edition.write.dataset import Dataset, Input
from sankofa.edition.write.tables import Table
from sankofa.engines.datastore import EditionWriter

if TYPE_CHECKING:
    from sankofa.edition.write.context import BuildContext


class TakenOver:
    """What of a build is taken over, and the inputs of what is not."""

    def __init__(self, datasets: Iterable[Dataset], tables: Iterable[Table], context: "BuildContext") -> None:
        self._datasets = {dataset.kind: dataset for dataset in datasets}
        self._tables = {table.name: table for table in tables}
        inputs = context.inputs
        self.inputs: dict[str, str] = {}
        """By kind of dataset or name of table; without those of which it cannot be told."""
        for name in (*self._datasets, *self._tables):
            if (reads := self._all_reads(name)) is not None:
                self.inputs[name] = inputs.digest(name, reads)
        self.base = inputs.digest("", ())
        """Of what everything is made of."""
        self.partitions: dict[str, PartitionRecord] = {}
        """The parts of organisations there were, by their inputs."""
        self.before: dict[str, DatasetRecord] = {}
        """The datasets as they were, whatever their inputs."""
        self.datasets: dict[str, DatasetRecord] = {}
        self.tables: dict[str, TableRecord] = {}
        self.tables_before: dict[str, TableRecord] = {}
        """The tables as they were, whatever their inputs."""

    def take(self, record: BuildRecord, writer: EditionWriter) -> None:
        """Take over whatever has the inputs it had, and is still there; its readers with it."""
        self.partitions = record.partitions
        self.before = record.datasets
        self.tables_before = record.tables
        self.datasets = {
            kind: known
            for kind, known in record.datasets.items()
            if known.inputs == self.inputs.get(kind)
            and all(writer.take_over(part.content) for part in known.parts)
        }
        self.tables = {
            name: known
            for name, known in record.tables.items()
            if known.inputs == self.inputs.get(name)
            and all(writer.take_over_file(file["name"], file["sha256"]) for file in known.files)
        }
        while self._given_up():
            pass

    def _given_up(self) -> bool:
        """Whether some were found that have to be built after all: others need what they return or offer."""
        needed = {
            need
            for kind, dataset in self._datasets.items()
            if kind not in self.datasets
            for need in dataset.needs
            if need in self.datasets and self.datasets[need].returned
        }
        needed |= {kind for name in self._tables if (kind := self._root(name)) and name not in self.tables}
        offered = {name for name in self.tables if (kind := self._root(name)) and kind not in self.datasets}
        given_up = [*needed.intersection(self.datasets), *offered]
        for name in given_up:
            self.datasets.pop(name, None)
            self.tables.pop(name, None)
        return bool(given_up)

    def _root(self, name: str) -> str:
        """The dataset that a table is made of, by way of other tables or not; empty where of none."""
        source = self._tables[name].takes_from
        while source in self._tables:
            source = self._tables[source].takes_from
        return source

    def _all_reads(self, name: str) -> set[Input] | None:
        """What a dataset or table is made of, with what it needs; None where that cannot be told."""
        if name in self._tables:
            table = self._tables[name]
            if not table.takes_from:
                return None if table.reads is None else {*table.reads}
            return self._all_reads(table.takes_from)
        dataset = self._datasets[name]
        if dataset.reads is None:
            return None
        reads = {*dataset.reads}
        for need in dataset.needs:
            further = self._all_reads(need)
            if further is None:
                return None
            reads |= further
        return reads
