"""What a check of an installation has to say."""

from typing import Literal, NamedTuple

from sankofa.settings import Settings


class Finding(NamedTuple):
    """One thing that was looked at. An `error` must be mended; a `warning` should be known."""

    check: str
    status: Literal["ok", "warning", "error"]
    message: str
    remedy: str = ""

    def line(self) -> str:
        advice = f"; {self.remedy}" if self.remedy else ""
        status = self.status if self.status == "ok" else self.status.upper()
        return f"{status:<8} {self.check:<12} {self.message}{advice}"


def to_have_an_edition(settings: Settings) -> str:
    """What to do where no edition is published."""
    if settings.editions:
        return "see `following` in `sankofa doctor`"
    if settings.datastore == "sqlite:" and not (settings.home / "ledger.sqlite").exists():
        return "try: sankofa starter"
    return "run: sankofa publish"
