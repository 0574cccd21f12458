"""Licence classes, datasets, and the notice every response carries."""

from collections.abc import Iterable
from typing import Final

LICENSE_CLASSES: Final = (
    "public-domain",
    "cc0",
    "cc-by",
    "open-government",
    "statutory-filing",
    "licensed-redistribution",
    "synthetic",
)
"""From the freest on; what is derived from several is held under the last of theirs."""

SKUS: Final = ("AF-FUND", "AF-TENDER", "AF-MACRO")

LICENSE_NOTICE: Final = (
    "Licence-clean data: every row names its source and the licence class it is held under, and no "
    "natural-person data is served. For research and information only; not a regulated benchmark."
)


def strictest(license_classes: Iterable[str]) -> str:
    """What a value derived from rows of these classes is held under."""
    return max(license_classes, key=LICENSE_CLASSES.index)
