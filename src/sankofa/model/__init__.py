"""What things are: ids, figures, periods, vintages, records, errors. Frozen, typed, no I/O."""
