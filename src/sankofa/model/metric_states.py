"""What a day shows of one issuer's metric."""

from enum import IntEnum


class State(IntEnum):
    """Its value, or why there is none."""

    STANDS = 0
    NOT_PUBLISHED = 1
    INPUT_ABSENT = 2
    CURRENCY_MIXED = 3
    DENOMINATOR_NOT_POSITIVE = 4
    COMPLETED_AFTER_AS_OF = 5
    REVISED_AFTER_AS_OF = 6


REASONS: dict[State, str] = {state: state.name.lower() for state in State if state is not State.STANDS}
