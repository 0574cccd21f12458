-- The ledger. Every table is append-only: the engine adds triggers that refuse UPDATE and DELETE.
-- The empty string stands for "not given", so that every column can be part of a key.
-- Read by both engines; "clustered" tables are stored in key order where the engine can.

CREATE TABLE IF NOT EXISTS capture (
    capture_id     BIGINT NOT NULL PRIMARY KEY,
    source_id      TEXT NOT NULL,
    file_name      TEXT NOT NULL,
    content_sha256 TEXT NOT NULL,
    observed_at    TEXT NOT NULL,
    license_class  TEXT NOT NULL,
    counts         TEXT NOT NULL
) /* clustered */;

-- A file with nothing new, with its own number among the captures. If the earlier file with the same rows is
-- withdrawn, this one gives the rows.
CREATE TABLE IF NOT EXISTS unchanged_file (
    capture_id     BIGINT NOT NULL PRIMARY KEY,
    source_id      TEXT NOT NULL,
    file_name      TEXT NOT NULL,
    content_sha256 TEXT NOT NULL,
    observed_at    TEXT NOT NULL,
    license_class  TEXT NOT NULL
) /* clustered */;

-- The figures of a subject that a file adds to its source: how many, and by column their distinct texts and the
-- number of the text of each: [[texts, numbers], ...] (ledger.facts). available_at is '' if the source evidences no
-- day: the day of capture then replaces it, and ingesting the file again does not change it.
CREATE TABLE IF NOT EXISTS fact (
    subject    TEXT NOT NULL,
    source_id  TEXT NOT NULL,
    part       BIGINT NOT NULL,
    facts      BIGINT NOT NULL,
    told       TEXT NOT NULL,
    capture_id BIGINT NOT NULL,
    PRIMARY KEY (subject, capture_id, part)
) /* clustered */;

-- When a register accepted a document of a subject: an instant in UTC.
CREATE TABLE IF NOT EXISTS acceptance (
    subject    TEXT NOT NULL,
    document   TEXT NOT NULL,
    instant    TEXT NOT NULL,
    source_id  TEXT NOT NULL,
    capture_id BIGINT NOT NULL,
    PRIMARY KEY (subject, document, instant, source_id)
) /* clustered */;

-- A source's record of an organisation, valid from `effective` until its next record of the same subject.
CREATE TABLE IF NOT EXISTS entity_record (
    subject    TEXT NOT NULL,
    source_id  TEXT NOT NULL,
    effective  TEXT NOT NULL,
    digest     TEXT NOT NULL,
    profile    TEXT NOT NULL,
    capture_id BIGINT NOT NULL,
    PRIMARY KEY (subject, source_id, effective, digest)
) /* clustered */;

-- Subjects that turned out to be natural persons: a count and a keyed hash, never a name or a number.
CREATE TABLE IF NOT EXISTS withheld (
    subject_hmac TEXT NOT NULL,
    source_id    TEXT NOT NULL,
    capture_id   BIGINT NOT NULL,
    PRIMARY KEY (subject_hmac, source_id)
) /* clustered */;

-- An identifier belongs to a subject according to a source, until the source assigns it to another.
CREATE TABLE IF NOT EXISTS link (
    identifier TEXT NOT NULL,
    source_id  TEXT NOT NULL,
    effective  TEXT NOT NULL,
    subject    TEXT NOT NULL,
    location   TEXT NOT NULL,
    capture_id BIGINT NOT NULL,
    PRIMARY KEY (identifier, source_id, effective, subject)
) /* clustered */;

-- The first and last day on which an identifier belonged to a subject according to a source. Of several rows with one
-- first day the latest counts. The last day is '' while it belongs; the first is '' if the source gives none.
CREATE TABLE IF NOT EXISTS spell (
    identifier TEXT NOT NULL,
    source_id  TEXT NOT NULL,
    subject    TEXT NOT NULL,
    first_day  TEXT NOT NULL,
    effective  TEXT NOT NULL,
    last_day   TEXT NOT NULL,
    location   TEXT NOT NULL,
    capture_id BIGINT NOT NULL,
    PRIMARY KEY (identifier, source_id, subject, first_day, effective)
) /* clustered */;

-- A cleaned OCDS release. The same (ocid, release_id, release_date) with other content is a correction: both stay, and
-- the one with the highest number is served. Not clustered, because the rows are long.
CREATE TABLE IF NOT EXISTS release (
    ocid         TEXT NOT NULL,
    release_id   TEXT NOT NULL,
    release_date TEXT NOT NULL,
    number       BIGINT NOT NULL,
    digest       TEXT NOT NULL,
    country      TEXT NOT NULL,
    location     TEXT NOT NULL,
    summary      TEXT NOT NULL,
    parties      TEXT NOT NULL,
    body         TEXT NOT NULL,
    capture_id   BIGINT NOT NULL,
    PRIMARY KEY (ocid, release_id, release_date, number)
);

-- The order in which a country's releases are served. Without the Z, ':00' comes before ':00.500000', as it should.
CREATE INDEX IF NOT EXISTS release_order
    ON release (country, rtrim(release_date, 'Z') DESC, ocid, release_id, number DESC);

-- A party of releases. Every row has a name and the evidence that it names an organisation.
CREATE TABLE IF NOT EXISTS party (
    party_id     TEXT NOT NULL,
    name         TEXT NOT NULL CHECK (name <> ''),
    country      TEXT NOT NULL,
    identifiers  TEXT NOT NULL,
    org_evidence TEXT NOT NULL CHECK (org_evidence <> ''),
    capture_id   BIGINT NOT NULL,
    PRIMARY KEY (party_id)
) /* clustered */;

-- Parties without evidence that they are organisations: a keyed hash, never a name.
CREATE TABLE IF NOT EXISTS withheld_party (
    party_hmac TEXT NOT NULL,
    source_id  TEXT NOT NULL,
    capture_id BIGINT NOT NULL,
    PRIMARY KEY (party_hmac, source_id)
) /* clustered */;

-- The values by year that a table changed in its source, for one indicator in one country: {"2020":"1.5"}. A value is
-- empty if it was withdrawn, null if the table no longer has the year. Millions of values take some 100,000 rows.
CREATE TABLE IF NOT EXISTS annual (
    country    TEXT NOT NULL,
    indicator  TEXT NOT NULL,
    capture_id BIGINT NOT NULL,
    part       BIGINT NOT NULL,
    source_id  TEXT NOT NULL,
    document   TEXT NOT NULL,
    told       TEXT NOT NULL,
    PRIMARY KEY (country, indicator, capture_id, part)
) /* clustered */;

-- The name of an indicator, from a capture on.
CREATE TABLE IF NOT EXISTS indicator (
    indicator  TEXT NOT NULL,
    capture_id BIGINT NOT NULL,
    name       TEXT NOT NULL,
    PRIMARY KEY (indicator, capture_id)
) /* clustered */;

-- The name and unit of a series or indicator in its source's metadata, from a capture on; empty if not given.
CREATE TABLE IF NOT EXISTS series_info (
    code       TEXT NOT NULL,
    capture_id BIGINT NOT NULL,
    name       TEXT NOT NULL,
    unit       TEXT NOT NULL,
    PRIMARY KEY (code, capture_id)
) /* clustered */;

-- The values of a series that a document adds to its source, in the order of the document:
-- [[date, day it became public, value, unit, location in the document], ...]; the value is empty if it was withdrawn.
CREATE TABLE IF NOT EXISTS series (
    series      TEXT NOT NULL,
    series_type TEXT NOT NULL,
    frequency   TEXT NOT NULL,
    country     TEXT NOT NULL,
    capture_id  BIGINT NOT NULL,
    part        BIGINT NOT NULL,
    source_id   TEXT NOT NULL,
    document    TEXT NOT NULL,
    told        TEXT NOT NULL,
    PRIMARY KEY (series, series_type, frequency, country, capture_id, part)
) /* clustered */;

-- A withdrawal and its reason. It has its own number among the captures, starts the next generation of its source
-- (ledger.generations), and lists the files in `withdrawn`: [[capture_id, file_name, sha256, observed_at], ...].
CREATE TABLE IF NOT EXISTS withdrawal (
    capture_id  BIGINT NOT NULL PRIMARY KEY,
    source_id   TEXT NOT NULL,
    generation  BIGINT NOT NULL,
    observed_at TEXT NOT NULL,
    capture     BIGINT NOT NULL,
    file_name   TEXT NOT NULL,
    everywhere  BIGINT NOT NULL,
    reason      TEXT NOT NULL,
    withdrawn   TEXT NOT NULL
) /* clustered */;

-- A repeated capture after a withdrawal, and the first capture of the same file, which it replaces.
CREATE TABLE IF NOT EXISTS recapture (
    capture_id BIGINT NOT NULL PRIMARY KEY,
    stands_for BIGINT NOT NULL
) /* clustered */;

-- Everything appended, in order: one row for each capture, and one for each row without a capture (capture_id is 0).
-- content has by table the sum of the digests of its rows. chain is a keyed digest of this row and of the previous
-- chain, so a missing, altered or misplaced capture shows (ledger.seals).
CREATE TABLE IF NOT EXISTS seal (
    position   BIGINT NOT NULL PRIMARY KEY,
    capture_id BIGINT NOT NULL,
    content    TEXT NOT NULL,
    chain      TEXT NOT NULL
) /* clustered */;
