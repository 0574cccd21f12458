"""`sankofa verify`: checks that an answer is one that its publisher signed."""

from pathlib import Path

import click
import httpx

from sankofa.client.proofs import verify
from sankofa.engines.publication import signers_of
from sankofa.model.errors import OperatorError
from sankofa.settings import load

_SECONDS = 30.0


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

    Without --key, the keys of SANKOFA_TRUSTED_KEYS count, and then the key of HOME.
    """
    settings = load()
    trusted = settings.verifier_keys() or tuple(one.verifier for one in signers_of(settings.home))
    keys = key or ",".join(one.text for one in trusted)
    if not keys:
        raise click.UsageError("no key is trusted here: name one with --key")
    try:
        if answer.startswith(("https://", "http://")):
            headers = {"X-API-Key": api_key} if api_key else {}
            reply = httpx.get(answer, headers=headers, timeout=_SECONDS, follow_redirects=False)
            if reply.status_code != httpx.codes.OK:
                raise OperatorError(f"{answer}: answered {reply.status_code}")
            edition = verify(reply.content, keys, since=since)
        else:
            edition = verify(Path(answer), keys, since=since)
    except (OSError, httpx.HTTPError) as failure:
        raise OperatorError(f"{Path(answer).name}: {failure}") from failure
    except ValueError as wrong:
        raise click.ClickException(str(wrong)) from None
    click.echo(f"every row is of edition {edition}, which is in the signed log")
