"""EXCHANGE:TICKER is written one way, whichever code the source has for the exchange."""

import csv
from pathlib import Path

from sankofa.model.identifiers import _CODES, _EXCHANGES, exchange, exchange_of_figi
from tests.every import every


@every("code", ["JSE", "jse", " XJSE ", "altx", "JNB"])
def test_every_code_of_an_exchange_is_its_one_name(code: str) -> None:
    assert exchange(code) == "JSE"


def test_exchanges_that_share_their_letters_stay_apart() -> None:
    assert [exchange(mic) for mic in ("XNSE", "XNAI", "XNSA")] == ["NSE", "NSE-KE", "NGX"]
    assert [exchange(mic) for mic in ("XBOM", "XBOT")] == ["BSE", "BSE-BW"]


@every("code", ["XPAR", "B3", "NL", "SJ", "anything"])
def test_a_code_that_is_not_listed_stands_for_itself(code: str) -> None:
    assert exchange(code) == code.upper()


def test_no_code_means_two_exchanges() -> None:
    codes = [code for name, codes in _CODES.items() for code in {name, *codes}]
    assert len(codes) == len(set(codes))
    of_figi = [code for one in _EXCHANGES.values() for code in one.get("figi", "").split()]
    assert len(of_figi) == len(set(of_figi))


@every(("code", "name"), [("SJ", "JSE"), ("bg", "BSE-BW"), ("ZL", "LUSE"), ("AU", "ASX"), ("UQ", "NASDAQ")])
def test_a_code_of_the_figi_standard_names_its_exchange(code: str, name: str) -> None:
    assert exchange_of_figi(code) == name


@every("code", ["US", "B3", "XT", "XJSE", "JSE", ""])
def test_composites_platforms_and_other_codes_are_no_exchange_of_the_figi_standard(code: str) -> None:
    assert exchange_of_figi(code) is None


def test_every_mic_is_one_of_iso_10383(shared_data: Path) -> None:
    with (shared_data / "identifiers" / "mic.csv").open(encoding="utf-8-sig", newline="") as stream:
        active = {row["mic"] for row in csv.DictReader(stream) if row["status"] == "active"}
    assert {mic for codes in _CODES.values() for mic in codes} - active == {"JNB"}
