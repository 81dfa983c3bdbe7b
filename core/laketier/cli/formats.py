"""``laketier formats``: what is installed, what it can do, what is broken."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from laketier.cli.lakes import Json
from laketier.cli.shown import console, print_json
from laketier.registry import InstalledPlugin, installed_formats, load_format
from laketier.spi import Feature, PluginError, support_of, unknown_features

EPILOG = "Example: [bold]laketier formats[/]"


def formats(json: Json = False) -> None:
    """List the installed formats, what each supports, and why a broken one can't be used."""
    offers = [_look(offer) for offer in installed_formats()]
    if json:
        print_json(offers)
        return
    out = console()
    if not offers:
        out.print("No format is installed. Install a plugin, for example from a checkout: pip install ./plugins/<name>")
        return
    table = Table(title=None)
    for column in ("format", "distribution", "delivery", "does not support"):
        table.add_column(column, overflow="fold")
    for offer in offers:
        if offer["error"]:
            table.add_row(offer["format"], offer["distribution"], "[red]broken[/]", offer["error"])
        else:
            missing = ", ".join(name for name, reason in offer["features"].items() if reason)
            table.add_row(offer["format"], offer["distribution"], offer["delivery"], missing or "-")
    out.print(table)
    for offer in offers:
        if offer["unknown_features"]:
            names = ", ".join(offer["unknown_features"])
            out.print(
                f"{offer['format']} names features that this laketier does not know: {names}. They are ignored. "
                "If they are no mistake, upgrade laketier to use them.",
                markup=False,
            )


def _look(offer: InstalledPlugin) -> dict[str, Any]:
    document: dict[str, Any] = {
        "format": offer.name,
        "distribution": f"{offer.distribution} {offer.version}",
        "module": offer.module,
        "delivery": None,
        "features": {},
        "unknown_features": [],
        "error": None,
    }
    try:
        plugin = load_format(offer.name)
    except PluginError as error:
        document["error"] = str(error)
    else:
        document["delivery"] = plugin.delivery.value
        document["features"] = {feature.value: support_of(plugin.features, feature).reason for feature in Feature}
        document["unknown_features"] = list(unknown_features(plugin.features))
    return document
