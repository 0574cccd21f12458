"""The vocabulary of the service: ids, figures, periods, vintages, records, errors. Frozen, typed, no I/O."""
