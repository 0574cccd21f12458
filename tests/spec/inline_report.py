"""A small inline XBRL report and its taxonomies, written by hand for the tests.

The issuer, its figures and its few concepts are invented. The namespaces are those of the real taxonomies, so
concepts have the same names as in real reports.
"""

import io
import zipfile

LEI = "999900SAMPLEKE000132"
IFRS = "https://xbrl.ifrs.org/taxonomy/2023-03-23"
IFRS_NAMESPACE = f"{IFRS}/ifrs-full"
EXTENSION = "https://example.org/annual/2023"

TAXONOMY_PACKAGE = """<?xml version="1.0" encoding="UTF-8"?>
<tp:taxonomyPackage xml:lang="en" xmlns:tp="http://xbrl.org/2016/taxonomy-package">
  <tp:identifier>{0}</tp:identifier><tp:name>{1}</tp:name><tp:version>1</tp:version>
</tp:taxonomyPackage>
"""
CATALOG = """<?xml version="1.0" encoding="UTF-8"?>
<catalog xmlns="urn:oasis:names:tc:entity:xmlns:xml:catalog">
  <rewriteURI uriStartString="{0}/" rewritePrefix="../{1}/"/>
</catalog>
"""
_SCHEMA = """<?xml version="1.0" encoding="UTF-8"?>
<xsd:schema xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:xbrli="http://www.xbrl.org/2003/instance"
  xmlns:xbrldt="http://xbrl.org/2005/xbrldt" xmlns:t="{namespace}" targetNamespace="{namespace}"
  elementFormDefault="qualified">
  <xsd:import namespace="http://www.xbrl.org/2003/instance"
    schemaLocation="http://www.xbrl.org/2003/xbrl-instance-2003-12-31.xsd"/>
  <xsd:import namespace="http://xbrl.org/2005/xbrldt" schemaLocation="http://www.xbrl.org/2005/xbrldt-2005.xsd"/>
  {imports}
  {elements}
</xsd:schema>
"""


def _item(prefix: str, name: str, kind: str = "monetary", period: str = "duration", **more: str) -> str:
    group = more.pop("substitutionGroup", "xbrli:item")
    attributes = "".join(f' {key}="{value}"' for key, value in more.items())
    return (
        f'<xsd:element name="{name}" id="{prefix}_{name}" type="xbrli:{kind}ItemType" nillable="true" '
        f'substitutionGroup="{group}" xbrli:periodType="{period}"{attributes}/>'
    )


def taxonomy() -> bytes:
    """The taxonomy package: a few concepts under the names of the IFRS taxonomy."""
    elements = "".join(
        (
            _item("ifrs-full", "Revenue"),
            _item("ifrs-full", "ProfitLoss"),
            _item("ifrs-full", "Assets", period="instant"),
            _item("ifrs-full", "BasicEarningsLossPerShare", "decimal"),
            _item("ifrs-full", "NameOfReportingEntityOrOtherMeansOfIdentification", "string"),
            _item(
                "ifrs-full",
                "SegmentsAxis",
                "string",
                substitutionGroup="xbrldt:dimensionItem",
                abstract="true",
            ),
            _item("ifrs-full", "ReportableSegmentsMember", "string", abstract="true"),
        )
    )
    schema = _SCHEMA.format(namespace=IFRS_NAMESPACE, imports="", elements=elements)
    return _zip(
        {
            "ifrs/META-INF/taxonomyPackage.xml": TAXONOMY_PACKAGE.format(IFRS, "A few IFRS concepts"),
            "ifrs/META-INF/catalog.xml": CATALOG.format(IFRS, "xbrl.ifrs.org"),
            "ifrs/xbrl.ifrs.org/full_ifrs_entry_point.xsd": schema,
        }
    )


def extension() -> str:
    """The issuer's own schema, with one concept that no taxonomy has."""
    imported = f'<xsd:import namespace="{IFRS_NAMESPACE}" schemaLocation="{IFRS}/full_ifrs_entry_point.xsd"/>'
    elements = _item("own", "GoldOuncesRefined", "decimal") + _item("own", "RoyaltiesOnOunces")
    return _SCHEMA.format(namespace=EXTENSION, imports=imported, elements=elements)


def _context(name: str, period: str, dimension: str = "", scheme: str = "", identifier: str = LEI) -> str:
    scheme = scheme or "http://standards.iso.org/iso/17442"
    scenario = f"<xbrli:scenario>{dimension}</xbrli:scenario>" if dimension else ""
    return (
        f'<xbrli:context id="{name}"><xbrli:entity><xbrli:identifier scheme="{scheme}">{identifier}'
        f"</xbrli:identifier></xbrli:entity><xbrli:period>{period}</xbrli:period>{scenario}</xbrli:context>"
    )


YEAR = "<xbrli:startDate>2023-01-01</xbrli:startDate><xbrli:endDate>2023-12-31</xbrli:endDate>"
YEAR_END = "<xbrli:instant>2023-12-31</xbrli:instant>"
SEGMENT = (
    '<xbrldi:explicitMember dimension="ifrs-full:SegmentsAxis">'
    "ifrs-full:ReportableSegmentsMember</xbrldi:explicitMember>"
)


def report(
    body: str = "",
    *,
    schema: str = f"{EXTENSION}/own-2023.xsd",
    before: str = "",
    scheme: str = "",
    identifier: str = LEI,
) -> str:
    """The document, with `before` in front of the root element."""
    contexts = (
        _context("year", YEAR, "", scheme, identifier)
        + _context("end", YEAR_END, "", scheme, identifier)
        + _context("segment", YEAR, SEGMENT, scheme, identifier)
    )
    body = body or BODY
    return f"""<?xml version="1.0" encoding="UTF-8"?>
{before}<html xmlns="http://www.w3.org/1999/xhtml" xmlns:ix="http://www.xbrl.org/2013/inlineXBRL"
  xmlns:ixt="http://www.xbrl.org/inlineXBRL/transformation/2020-02-12" xmlns:xbrli="http://www.xbrl.org/2003/instance"
  xmlns:xbrldi="http://xbrl.org/2006/xbrldi" xmlns:link="http://www.xbrl.org/2003/linkbase"
  xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:iso4217="http://www.xbrl.org/2003/iso4217"
  xmlns:ifrs-full="{IFRS_NAMESPACE}" xmlns:own="{EXTENSION}">
<head><title>Annual report, written for a test</title></head>
<body><div style="display:none"><ix:header><ix:references>
<link:schemaRef xlink:type="simple" xlink:href="{schema}"/></ix:references><ix:resources>{contexts}
<xbrli:unit id="zar"><xbrli:measure>iso4217:ZAR</xbrli:measure></xbrli:unit>
<xbrli:unit id="each"><xbrli:divide>
<xbrli:unitNumerator><xbrli:measure>iso4217:ZAR</xbrli:measure></xbrli:unitNumerator>
<xbrli:unitDenominator><xbrli:measure>xbrli:shares</xbrli:measure></xbrli:unitDenominator>
</xbrli:divide></xbrli:unit>
<xbrli:unit id="pure"><xbrli:measure>xbrli:pure</xbrli:measure></xbrli:unit>
</ix:resources></ix:header></div>{body}</body></html>
"""


BODY = """
<p><ix:nonNumeric name="ifrs-full:NameOfReportingEntityOrOtherMeansOfIdentification" contextRef="year"
  id="n1">Riftline Sample Telecom PLC</ix:nonNumeric></p>
<p>Revenue <ix:nonFraction id="f1" name="ifrs-full:Revenue" contextRef="year" unitRef="zar" decimals="-6"
  scale="6" format="ixt:num-dot-decimal">1,234.5</ix:nonFraction> million,
of which in segments <ix:nonFraction id="f2" name="ifrs-full:Revenue" contextRef="segment" unitRef="zar"
  decimals="-6" scale="6" format="ixt:num-dot-decimal">1,000</ix:nonFraction></p>
<p>Loss (<ix:nonFraction id="f3" name="ifrs-full:ProfitLoss" contextRef="year" unitRef="zar"
  decimals="-6" scale="6" sign="-" format="ixt:num-dot-decimal">17</ix:nonFraction>)</p>
<p>Assets <ix:nonFraction id="f4" name="ifrs-full:Assets" contextRef="end" unitRef="zar" decimals="0"
  format="ixt:num-dot-decimal">9,007,199,254,740,993</ix:nonFraction></p>
<p>Per share <ix:nonFraction id="f5" name="ifrs-full:BasicEarningsLossPerShare" contextRef="year"
  unitRef="each" decimals="2" sign="-" format="ixt:num-dot-decimal">0.42</ix:nonFraction></p>
<p>Ounces <ix:nonFraction id="f6" name="own:GoldOuncesRefined" contextRef="year" unitRef="pure" decimals="0"
  format="ixt:num-dot-decimal">12,345</ix:nonFraction></p>
<p>Royalties <ix:nonFraction id="f7" name="own:RoyaltiesOnOunces" contextRef="year" unitRef="zar" decimals="0"
  format="ixt:num-dot-decimal">77</ix:nonFraction></p>
<p>Nothing <ix:nonFraction id="f8" name="own:RoyaltiesOnOunces" contextRef="end" unitRef="zar" xsi:nil="true"
  xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"/></p>
"""


def report_package(document: str | bytes = "") -> bytes:
    """A report package as in ESEF: the report and the issuer's own taxonomy in one archive."""
    document = document or report()
    top = "999900SAMPLEKE000132-2023-12-31"
    return _zip(
        {
            f"{top}/META-INF/taxonomyPackage.xml": TAXONOMY_PACKAGE.format(EXTENSION, "The issuer's own"),
            f"{top}/META-INF/catalog.xml": CATALOG.format(EXTENSION, "example.org"),
            f"{top}/reports/report.xhtml": document,
            f"{top}/example.org/own-2023.xsd": extension(),
        }
    )


def _zip(files: dict[str, str | bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()
