"""``lbaas-scheduler-demo``: the whole product in one process, doing its main job with real traffic."""

from __future__ import annotations

import argparse
import socket
from collections.abc import Sequence

from oslo_config import cfg

from lbaas_scheduler.cli.output import for_readers
from lbaas_scheduler.cmd.demo import serving
from lbaas_scheduler.cmd.demo.house import House
from lbaas_scheduler.cmd.demo.report import AsJson, ForPeople, Reporter, Unexpected
from lbaas_scheduler.cmd.demo.story import Story
from lbaas_scheduler.errors import LBaaSError


@for_readers
def main(argv: Sequence[str] | None = None) -> int:
    """Show it, or with ``--serve`` leave it running for others to use.

    :returns: 0 if everything held, else 1.
    """
    arguments = _parser().parse_args(argv)
    if arguments.serve:
        return serving.serve(cfg.CONF, arguments.port)
    reporter: Reporter = AsJson() if arguments.json else ForPeople()
    error = _run(reporter)
    reporter.finish(error)
    return 0 if error is None else 1


def _run(reporter: Reporter) -> str | None:
    """:returns: what did not hold; None = everything did."""
    log = None
    try:
        with House(cfg.CONF) as house:
            log = house.log
            Story(house.devices, house.balancers, house.device_types, _free_port(), reporter).run()
    except (Unexpected, LBaaSError) as error:
        text = error.message if isinstance(error, LBaaSError) else str(error)
        return f"{text} (log: {log})" if log else text
    except KeyboardInterrupt:
        return "interrupted"
    return None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lbaas-scheduler-demo", description="The whole product in one process, doing its main job with real traffic."
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of what people read")
    parser.add_argument("--serve", action="store_true", help="tell no story: leave server and agent running, with a REST API")
    parser.add_argument(
        "--port",
        type=_port,
        default=serving.DEFAULT_PORT,
        metavar="N",
        help="with --serve: TCP port of the REST API on 127.0.0.1; 0 = any free one (default: %(default)s)",
    )
    return parser


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no TCP port; give a number from 0 to 65535")
    return int(text)


def _free_port() -> int:
    """A port above 1023, which needs no root, that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
