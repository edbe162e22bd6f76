"""``fuseboard store``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fuseboard_server.commands import datafile
from fuseboard_server.commands.groups import Group
from fuseboard_server.commands.options import STORE, STORE_HELP
from fuseboard_server.settings import ENV_STORE

if TYPE_CHECKING:
    from fuseboard_collector.store.clickhouse.address import Address

AT = click.option(
    "--store", type=STORE, envvar=ENV_STORE, show_envvar=True, required=True, help=STORE_HELP
)


@click.group(cls=Group)
def store() -> None:
    """Look after the data file, or set up a store in a ClickHouse database.

    The password may be in the address, or in $FUSEBOARD_STORE_PASSWORD.
    """


for _command in datafile.COMMANDS:
    store.add_command(_command)


@store.command()
@AT
def init(store: Address) -> None:
    """Create the database and the tables that are missing, and say which.

    What is there already is left alone. The user needs the rights CREATE DATABASE and CREATE
    TABLE for it; `serve` then needs SELECT, INSERT, ALTER DELETE and DROP PARTITION only.
    """
    from fuseboard_collector.errors import StoreError
    from fuseboard_collector.store.clickhouse.connection import connecting
    from fuseboard_collector.store.clickhouse.setup import initialise
    from fuseboard_server.serving import explain_store_error

    try:
        done = initialise(connecting(store)(), str(store), store.database)
    except StoreError as error:
        raise explain_store_error(error) from error
    for sentence in done or ["everything is there already"]:
        click.echo(sentence)
    click.echo(f"{store} is ready for `fuseboard serve --store`")


@store.command("attach-otel")
@AT
@click.option(
    "--table",
    default="otel_traces",
    show_default=True,
    help="The exporter's table, as in otel.otel_traces if it is in another database.",
)
def attach_otel(store: Address, table: str) -> None:
    """Have spans of tools in a table of the OpenTelemetry Collector become calls.

    For the table that its ClickHouse exporter writes, on the same server. Adds columns and two
    views that run on every insert; rows that are there already are read once. May be repeated.
    """
    from fuseboard_collector.errors import StoreError
    from fuseboard_collector.store.clickhouse.attaching import attach
    from fuseboard_collector.store.clickhouse.connection import connecting
    from fuseboard_collector.store.clickhouse.setup import check_current
    from fuseboard_server.serving import explain_store_error

    try:
        client = connecting(store)()
        client.database = store.database
        check_current(client, str(store))
        done = attach(client, str(store), table)
    except StoreError as error:
        raise explain_store_error(error) from error
    for sentence in done:
        click.echo(sentence)
