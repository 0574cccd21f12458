"""`sankofa verify`: checks that an answer or a file is one that its publisher signed."""

from hashlib import sha256
from pathlib import Path

import click
import httpx

from sankofa.client.proofs import PROOF, stamped_at, verify, verify_digest
from sankofa.engines.publication import signers_of
from sankofa.model.errors import OperatorError
from sankofa.settings import load

_SECONDS = 30.0
_PARQUET = ".parquet"


@click.command("verify")
@click.argument("answer", metavar="FILE|URL")
@click.option("--key", metavar="VKEY", help="Verifier key of the publisher (`sankofa editions key`).")
@click.option(
    "--since",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="An older checkpoint, or an answer with one: the log must only have grown since.",
)
@click.option(
    "--roots",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Trusted certificates (PEM): one of them must have stamped the checkpoint (RFC 3161).",
)
@click.option(
    "--timestamp",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The stamp. Without it /log/checkpoint.tsr is fetched from the host of the URL.",
)
@click.option("--api-key", envvar="SANKOFA_API_KEY", metavar="KEY", help="Key to fetch the URL with.")
def verify_command(
    answer: str,
    key: str | None,
    since: Path | None,
    roots: Path | None,
    timestamp: Path | None,
    api_key: str | None,
) -> None:
    """Check the rows of an answer that was asked with proof=true, offline, against the log of editions.

    The proof of FILE.parquet is FILE.parquet.proof beside it; that of a URL is fetched from URL.proof.
    Without --key, the keys of SANKOFA_TRUSTED_KEYS count, and then the key of HOME.
    """
    settings = load()
    trusted = settings.verifier_keys() or tuple(one.verifier for one in signers_of(settings.home))
    keys = key or ",".join(one.text for one in trusted)
    if not keys:
        raise click.UsageError("no key is trusted here: name one with --key")
    is_url = answer.startswith(("https://", "http://"))
    if roots is not None and timestamp is None and not is_url:
        raise click.UsageError("name the stamp of the checkpoint with --timestamp")
    when = ""
    try:
        if is_url:
            edition, proof = _verified(httpx.URL(answer), api_key, keys, since)
        else:
            edition = verify(Path(answer), keys, since=since)
            proof = Path(f"{answer}{PROOF}" if answer.endswith(_PARQUET) else answer).read_bytes()
        if roots is not None:
            stamp = timestamp.read_bytes() if timestamp is not None else _fetched_stamp(httpx.URL(answer))
            when = f" and was stamped at {stamped_at(proof, stamp, roots.read_bytes()):%Y-%m-%dT%H:%M:%SZ}"
    except (OSError, httpx.HTTPError) as failure:
        raise OperatorError(f"{Path(answer).name}: {failure}") from failure
    except ValueError as wrong:
        raise click.ClickException(str(wrong)) from None
    click.echo(f"everything is of edition {edition}, which is in the signed log{when}")


def _verified(url: httpx.URL, api_key: str | None, keys: str, since: Path | None) -> tuple[str, bytes]:
    """The edition at an address, and its proof. Raises ValueError, OperatorError or httpx.HTTPError."""
    headers = {"X-API-Key": api_key} if api_key else {}
    with httpx.Client(headers=headers, timeout=_SECONDS, follow_redirects=False) as client:
        if not url.path.endswith(_PARQUET):
            content = _fetched(client, url)
            return verify(content, keys, since=since), content
        proof = _fetched(client, url.copy_with(path=url.path + PROOF))
        digest = sha256()
        with client.stream("GET", url) as reply:
            _check(reply)
            for chunk in reply.iter_raw():
                digest.update(chunk)
    return verify_digest(digest.hexdigest(), proof, keys, since=since), proof


def _fetched_stamp(url: httpx.URL) -> bytes:
    with httpx.Client(timeout=_SECONDS, follow_redirects=False) as client:
        return _fetched(client, url.copy_with(path="/log/checkpoint.tsr", query=None))


def _fetched(client: httpx.Client, url: httpx.URL) -> bytes:
    reply = client.get(url)
    _check(reply)
    return reply.content


def _check(reply: httpx.Response) -> None:
    if reply.status_code != httpx.codes.OK:
        raise OperatorError(f"{reply.url}: answered {reply.status_code}")
