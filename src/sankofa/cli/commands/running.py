"""Commands that run the service, or ask how it is."""

import asyncio
import sys

import click

from sankofa import settings


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(1, 65535), help="Port to listen on."
)
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1, 64), help="Worker processes.")
def serve(host: str, port: int, workers: int) -> None:
    """Serve the current edition, and each newer one from the moment it is published."""
    from sankofa.cli import serving  # `status` needs nothing of it

    serving.serve(settings.load(), host, port, workers)


@click.command()
def status() -> None:
    """The dependency reads of /v1/status; exit code 1 when degraded."""
    from sankofa.operations.service import Service, probe

    async def look() -> dict[str, tuple[str | None, float]]:
        service = Service(settings.load())
        try:
            checks = await probe(service)
            if (following := service.following()) is not None:
                checks["editions"] = (following[1], 0.0)
            return checks
        finally:
            await service.stop()

    checks = asyncio.run(look())
    for name, (failure, took) in checks.items():
        click.echo(f"{name:<10}  {'ok' if failure is None else 'FAILED: ' + failure}  {took:.1f} ms")
    if any(failure is not None for failure, _ in checks.values()):
        sys.exit(1)
