"""Which published rates a cross rate can be computed from: by currency, its daily rates against others."""

from typing import Final

import msgspec

RATE_LEGS: Final = "rate-leg"


class RateLeg(msgspec.Struct, frozen=True, array_like=True):
    """A currency's daily rate against another."""

    via: str
    """The other currency."""
    key: str
    """Of the series in `macro-series`."""
    inverted: bool
    """True where the series is the price of the currency in the other (`FX.NGN.USD` of NGN), not units of the
    currency for one of the other."""

    @property
    def series(self) -> str:
        return self.key.partition("|")[0]


encode_legs = msgspec.msgpack.Encoder().encode
decode_legs = msgspec.msgpack.Decoder(list[RateLeg]).decode
