"""A set of 64-bit numbers that takes 16 to 32 bytes for each: a set of Python's takes some 70."""

from array import array
from collections.abc import Iterable
from typing import Final

_FIRST_SLOTS: Final = 1 << 12


class NumberSet:
    """Numbers that are evenly spread, as digests are; 0 is taken for 1."""

    def __init__(self) -> None:
        self._slots = array("Q", bytes(8 * _FIRST_SLOTS))
        self._mask = _FIRST_SLOTS - 1
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, number: int) -> bool:
        """Whether it was not there yet."""
        number = number or 1
        slots, mask = self._slots, self._mask
        slot = number & mask
        while occupant := slots[slot]:
            if occupant == number:
                return False
            slot = (slot + 1) & mask
        slots[slot] = number
        self._count += 1
        if 2 * self._count > mask:
            self._grow()
        return True

    def add_all(self, numbers: Iterable[int]) -> list[bool]:
        """Of each whether it was not there yet: as `add`, without a call for each."""
        slots, mask, count = self._slots, self._mask, self._count
        new: list[bool] = []
        for given in numbers:
            number = given or 1
            slot = number & mask
            occupant = slots[slot]
            while occupant and occupant != number:
                slot = (slot + 1) & mask
                occupant = slots[slot]
            new.append(not occupant)
            if not occupant:
                slots[slot] = number
                count += 1
                if 2 * count > mask:
                    self._count = count
                    self._grow()
                    slots, mask = self._slots, self._mask
        self._count = count
        return new

    def _grow(self) -> None:
        mask = 2 * self._mask + 1
        slots = array("Q", bytes(8 * (mask + 1)))
        for number in self._slots:
            if number:
                slot = number & mask
                while slots[slot]:
                    slot = (slot + 1) & mask
                slots[slot] = number
        self._slots, self._mask = slots, mask
