"""`sankofa verify`: checks that an answer or a file is one that its publisher signed."""

from hashlib import sha256
from pathlib import Path

import click
import httpx

from sankofa.client.proofs import PROOF, verify, verify_digest
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
@click.option("--api-key", envvar="SANKOFA_API_KEY", metavar="KEY", help="Key to fetch the URL with.")
def verify_command(answer: str, key: str | None, since: Path | None, api_key: str | None) -> None:
    """Check the rows of an answer that was asked with proof=true, offline, against the log of editions.

    The proof of FILE.parquet is FILE.parquet.proof beside it; that of a URL is fetched from URL.proof.
    Without --key, the keys of SANKOFA_TRUSTED_KEYS count, and then the key of HOME.
    """
    settings = load()
    trusted = settings.verifier_keys() or tuple(one.verifier for one in signers_of(settings.home))
    keys = key or ",".join(one.text for one in trusted)
    if not keys:
        raise click.UsageError("no key is trusted here: name one with --key")
    try:
        if answer.startswith(("https://", "http://")):
            edition = _verified(httpx.URL(answer), api_key, keys, since)
        else:
            edition = verify(Path(answer), keys, since=since)
    except (OSError, httpx.HTTPError) as failure:
        raise OperatorError(f"{Path(answer).name}: {failure}") from failure
    except ValueError as wrong:
        raise click.ClickException(str(wrong)) from None
    click.echo(f"everything is of edition {edition}, which is in the signed log")


def _verified(url: httpx.URL, api_key: str | None, keys: str, since: Path | None) -> str:
    """The edition of what an address has. Raises ValueError, OperatorError or httpx.HTTPError."""
    headers = {"X-API-Key": api_key} if api_key else {}
    with httpx.Client(headers=headers, timeout=_SECONDS, follow_redirects=False) as client:
        if not url.path.endswith(_PARQUET):
            return verify(_fetched(client, url), keys, since=since)
        proof = _fetched(client, url.copy_with(path=url.path + PROOF))
        digest = sha256()
        with client.stream("GET", url) as reply:
            _check(reply)
            for chunk in reply.iter_raw():
                digest.update(chunk)
    return verify_digest(digest.hexdigest(), proof, keys)


def _fetched(client: httpx.Client, url: httpx.URL) -> bytes:
    reply = client.get(url)
    _check(reply)
    return reply.content


def _check(reply: httpx.Response) -> None:
    if reply.status_code != httpx.codes.OK:
        raise OperatorError(f"{reply.url}: answered {reply.status_code}")
