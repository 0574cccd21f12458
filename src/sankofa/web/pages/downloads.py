"""Downloads: the Parquet files of the edition, with the lines that read them."""

from sankofa.web.view import View, page
from sankofa.web.visit import Visit


@page("/downloads")
async def downloads(visit: Visit) -> View:
    """The files, those that need no key first."""
    files = (await visit.ask("get_export")).rows
    files.sort(key=lambda row: row["access"] != "open")
    return View("downloads.html", visit.language.text("Downloads"), {"files": files})
