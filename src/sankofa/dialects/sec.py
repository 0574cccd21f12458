"""The SEC's data API: companyfacts, companyconcept, submissions and the list of tickers.

A registrant is an organisation whose crosswalk has a CIK. Each vintage of a figure is an entry, `filed` on
the day it became public; a figure that was filed again unchanged adds none.
"""

from typing import Final

import msgspec

from sankofa.dialects.contract import JSON, Dialect, DialectQuestion, DialectReply, DialectRequest, Row
from sankofa.edition.format.issuer_pages import COMPANY_FACTS, company_facts_on
from sankofa.edition.read.yield_points import YieldPoints
from sankofa.model.errors import NotFound, Problem
from sankofa.model.identifiers import SEC_CIK, cik
from sankofa.operations.nearest import identified
from sankofa.operations.parameters import MOST_MATCHES

_encode = msgspec.json.Encoder(decimal_format="number").encode


async def answer(question: DialectQuestion) -> DialectReply:
    parts = question.request.path.split("/")
    match [part.removesuffix(".json") for part in parts]:
        case ["api", "xbrl", "companyfacts", registrant]:
            return await _company_facts(question, registrant)
        case ["api", "xbrl", "companyconcept", registrant, taxonomy, tag]:
            return await _company_concept(question, registrant, taxonomy, tag)
        case ["files", "company_tickers"]:
            return await _tickers(question)
        case ["submissions", registrant]:
            return await _submissions(question, registrant)
    raise NotFound("No such path; there are api/xbrl/companyfacts and companyconcept, submissions.")


def refuse(problem: Problem, request: DialectRequest) -> DialectReply:
    body = {"code": problem.slug, "message": problem.detail, **problem.members()}
    return DialectReply(_encode(body), JSON, problem.status)


async def _registrant(question: DialectQuestion, text: str) -> tuple[str, int, str]:
    """The service_id, the CIK as a number and the name of `CIK0001835632`. Raises NotFound."""
    try:
        number = cik(text.upper().removeprefix("CIK")).value
    except ValueError:
        raise NotFound(f"No registrant {text[:40]!r}: expected CIK and ten digits.") from None
    question.call.grant.requires_paid("A lookup by registry")
    matches = await identified(question.call, number, ("registry",), MOST_MATCHES)
    own = next((one for one in matches if one.scheme == SEC_CIK), None)
    if own is None:
        raise NotFound(f"No registrant with CIK {number}.")
    return own.service_id, int(number), own.legal_name or ""


async def _facts(question: DialectQuestion, service_id: str) -> dict[str, dict[str, Row]]:
    """Every figure of an issuer known on the day of the view, by taxonomy and tag, then by unit."""
    block = await question.call.edition.index_block(COMPANY_FACTS, service_id)
    facts: dict[str, dict[str, Row]] = {}
    if block is not None:
        for taxonomy, tag, unit, label, figures in company_facts_on(block, question.call.today.toordinal()):
            concept = facts.setdefault(taxonomy, {}).setdefault(tag, {})
            if not concept:
                concept |= {"label": label, "description": "", "units": {}}
            concept["units"][unit] = msgspec.Raw(b"[%b]" % figures)
    return facts


async def _company_facts(question: DialectQuestion, registrant: str) -> DialectReply:
    service_id, number, name = await _registrant(question, registrant)
    facts = await _facts(question, service_id)
    return DialectReply(_encode({"cik": number, "entityName": name, "facts": facts}), JSON)


async def _company_concept(
    question: DialectQuestion, registrant: str, taxonomy: str, tag: str
) -> DialectReply:
    service_id, number, name = await _registrant(question, registrant)
    concept = (await _facts(question, service_id)).get(taxonomy, {}).get(tag)
    if concept is None:
        raise NotFound(f"{name} reported no {taxonomy}:{tag}.")
    head = {"cik": number, "taxonomy": taxonomy, "tag": tag, "entityName": name}
    return DialectReply(_encode({**head, **concept}), JSON)


async def _tickers(question: DialectQuestion) -> DialectReply:
    """The tickers of registrants, numbered as the SEC numbers them; read once for an edition or a day."""
    question.call.grant.requires_paid("A list of registrants")
    kept = question.call.edition.cache("tickers of registrants", 1)
    if (body := kept.get("")) is None:
        listed: list[Row] = []
        yield_points = YieldPoints(16)
        for issuer in await question.rows("list_issuers"):
            await yield_points.step()
            own = await question.rows("get_crosswalk", service_id=issuer["service_id"])
            if numbers := [int(one["id_value"]) for one in own if one["scheme"] == SEC_CIK]:
                name = issuer["legal_name"] or ""
                tickers = dict.fromkeys(one["ticker"] for one in issuer["listings"])
                listed += ({"cik_str": numbers[0], "ticker": one, "title": name} for one in tickers)
        body = _encode({str(number): row for number, row in enumerate(listed)})
        kept.put("", body)
    return DialectReply(body, JSON)


async def _submissions(question: DialectQuestion, registrant: str) -> DialectReply:
    """A registrant as the SEC describes it. Filings and addresses are not held."""
    service_id, number, name = await _registrant(question, registrant)
    (entity,) = await question.rows("get_entity", service_id=service_id) or [{}]
    listings = entity.get("listings") or []
    address = dict.fromkeys(
        "street1 street2 city stateOrCountry zipCode stateOrCountryDescription isForeignLocation".split()
    )
    unknown = (
        "sic sicDescription ownerOrg ein description website investorWebsite category fiscalYearEnd phone "
        "stateOfIncorporation stateOfIncorporationDescription"
    )
    columns = (
        "accessionNumber filingDate reportDate acceptanceDateTime act form fileNumber filmNumber items "
        "core_type size isXBRL isInlineXBRL primaryDocument primaryDocDescription"
    )
    body: Row = {
        "cik": f"{number:010d}",
        "entityType": "operating",
        **dict.fromkeys(unknown.split()),
        "insiderTransactionForOwnerExists": 0,
        "insiderTransactionForIssuerExists": 0,
        "name": name,
        "tickers": [one["ticker"] for one in listings],
        "exchanges": [one["exchange"] for one in listings],
        "lei": entity.get("lei"),
        "addresses": {"mailing": address, "business": address},
        "flags": "",
        "formerNames": [],
        "filings": {"recent": {column: [] for column in columns.split()}, "files": []},
    }
    return DialectReply(_encode(body), JSON)


DIALECT: Final = Dialect("sec", ("/sec",), answer, refuse)
