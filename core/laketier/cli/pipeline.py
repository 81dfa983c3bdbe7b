"""``laketier pipeline show | adopt | rewind | forget | rename``: the ways out of a refusal."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated

import typer

from laketier.cli.lakes import MOST, Json, LakeOptions, takes_lake
from laketier.cli.shown import print_json, say
from laketier.cli.watermarks import watermark_document, watermark_text
from laketier.spi import ConfigError, Watermark
from laketier.tiering import pipelines
from laketier.tiering.renaming import Renaming

app = typer.Typer(help="Look at, or set, the watermark of a pipeline in a table.", no_args_is_help=True)

Pipeline = Annotated[str, typer.Option("--pipeline", "-p", help="lake.pipeline", show_default=False)]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@app.command(epilog="Example: [bold]laketier pipeline show sales.orders -p orders-v1 -c lake.yaml[/]")
@takes_lake
def show(pipeline: Pipeline, options: LakeOptions, json: Json = False) -> None:
    """Print the watermark. Of a pipeline that the table does not know: the names of those that it knows."""
    lake, info = options.opened()
    state = lake.state(info)
    watermark = pipelines.show(state, pipeline)
    _print(pipeline, watermark, json)
    if watermark is None and not json and (others := pipelines.known(state)):
        say(f"These did: {', '.join(other.pipeline for other in others)}")


@app.command(
    epilog="Example: [bold]laketier pipeline adopt sales.orders -p orders-v1 --run 3f6c… --epoch 41 -c lake.yaml[/]"
)
@takes_lake
def adopt(
    *,
    pipeline: Pipeline,
    epoch: Annotated[int, typer.Option(help="The last epoch whose rows are in the table.", min=0, max=MOST)],
    run: Annotated[
        str | None, typer.Option(help="The run (a checkpoint's id); the table's own by default.", show_default=False)
    ] = None,
    checkpoint: Annotated[
        str | None, typer.Option(help="A Spark checkpoint, to take the run from.", show_default=False)
    ] = None,
    options: LakeOptions,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Declare that all rows up to EPOCH of a run are in the table. The next round will be EPOCH + 1."""
    lake, info = options.opened()
    factory, state = lake.tiering_factory(info), lake.state(info)
    if checkpoint is not None:
        run = _run_of(checkpoint)
    if run is None:
        last = pipelines.show(state, pipeline)
        if last is None:
            raise ConfigError(
                f"the table does not know pipeline {pipeline!r}, so the run must be given",
                fix="Add --checkpoint DIR, or --run ID.",
            )
        run = last.token.run
    for other in pipelines.of_the_run(state, pipeline, run):
        say(f"{other} goes on in run {run} as well. If both read the same input, all rows come twice.", err=True)
    _confirm(yes, f"Declare that {info.path} holds epochs 0 to {epoch} of run {run}?")
    _print(pipeline, pipelines.adopt(factory, pipeline, run=run, epoch=epoch), json)


@app.command(epilog="Example: [bold]laketier pipeline rewind sales.orders -p orders-v1 --epoch 40 -c lake.yaml[/]")
@takes_lake
def rewind(
    pipeline: Pipeline,
    epoch: Annotated[int, typer.Option(help="The epoch to go back to.", min=0, max=MOST)],
    options: LakeOptions,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Go back to EPOCH, after the rows of later epochs were removed: they will be written again."""
    lake, info = options.opened()
    _confirm(yes, f"The rows of epochs after {epoch} are no longer in {info.path}?")
    _print(pipeline, pipelines.rewind(lake.tiering_factory(info), pipeline, epoch=epoch), json)


@app.command(epilog="Example: [bold]laketier pipeline forget sales.orders -p orders-v1 -c lake.yaml[/]")
@takes_lake
def forget(pipeline: Pipeline, options: LakeOptions, yes: Yes = False, json: Json = False) -> None:
    """Treat the pipeline as new. Its rows stay; a query that reads its input again will write them again."""
    lake, info = options.opened()
    _confirm(yes, f"Forget pipeline {pipeline} in {info.path}?")
    _print(pipeline, pipelines.forget(lake.tiering_factory(info), pipeline), json)


@app.command(epilog="Example: [bold]laketier pipeline rename sales.orders -p shop.log.orders --to store.log.orders[/]")
@takes_lake
def rename(
    *,
    pipeline: Pipeline,
    to: Annotated[str, typer.Option(help="The new name.", show_default=False)],
    options: LakeOptions,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only look whether it can be done.")] = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Let the pipeline go on under another name, exactly where it is. Its dead letters and their replays follow. A
    renaming that was stopped half-way is ended by running it again."""
    # Heavy, and only this command needs it.
    from laketier.dead_letters.renaming import rename_pipeline

    named = replace(options, set=[*(options.set or []), f"lake.pipeline={to}"])
    lake, info = named.opened()
    if not dry_run:
        _confirm(yes, f"Has all that writes to {info.path} as {pipeline} ended, and is its name {to} now?")
    renamed = rename_pipeline(lake.config, pipeline, to, dry_run=dry_run)
    if json:
        print_json({"dry_run": dry_run, "renamed": [asdict(each) | {"found": each.found.value} for each in renamed]})
        return
    for each in renamed:
        done = "goes on as" if each.found is Renaming.DONE or not dry_run else "would go on as"
        say(f"{each.table}: {each.old} {done} {each.new}")


def _run_of(checkpoint: str) -> str:
    # pyspark is an extra, and only this option needs what is built on it.
    from laketier.spark.checkpoint import Checkpoint

    opened_checkpoint = Checkpoint.open(checkpoint)
    if not isinstance(opened_checkpoint, Checkpoint):
        raise ConfigError(f"the checkpoint {checkpoint} can't be read", why=opened_checkpoint.why, fix="Give --run ID.")
    return opened_checkpoint.run


def _confirm(yes: bool, question: str) -> None:
    if not yes:
        typer.confirm(question, abort=True, err=True)


def _print(pipeline: str, watermark: Watermark | None, json: bool) -> None:
    if json:
        print_json(watermark_document(watermark))
    else:
        say(watermark_text(pipeline, watermark))
