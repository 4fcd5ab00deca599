"""Reading ``scheduler.conf`` and the command line, with errors that say what is wrong where. Called by ``cmd`` only."""

from __future__ import annotations

import difflib
import logging
import sys
from collections.abc import Sequence

from oslo_config import cfg
from oslo_log import log

from lbaas_scheduler.conf import opts
from lbaas_scheduler.errors import ConfigurationError

LOG = logging.getLogger(__name__)

PROJECT = "lbaas-scheduler"
FILE = "scheduler"
"""``~/.lbaas-scheduler/scheduler.conf`` and ``/etc/lbaas-scheduler/scheduler.conf`` are read unless --config-file is given."""

USAGE_EXIT_CODE = 2


def load(conf: cfg.ConfigOpts, argv: Sequence[str], prog: str) -> None:
    """Register all options, read them, and set logging up. On an error print one line on stderr and exit with 2.

    :param argv: the arguments after the program's name.
    :param prog: name of the program, for messages.
    """
    try:
        read(conf, argv, prog)
        log.setup(conf, PROJECT)
    except ConfigurationError as error:
        print(f"{prog}: {error.message}", file=sys.stderr)
        sys.exit(USAGE_EXIT_CODE)
    except log.LogConfigError as error:
        print(f"{prog}: {error}", file=sys.stderr)
        sys.exit(USAGE_EXIT_CODE)
    for warning in misspelt(conf):
        LOG.warning("%s", warning)


def read(conf: cfg.ConfigOpts, argv: Sequence[str], prog: str) -> None:
    """Register all options and read them: every value is checked now, not when somebody first needs it.

    :raises ConfigurationError: names the file, the group and the option, or what else is wrong.
    """
    log.register_options(conf)
    # Every look at the schema's version has alembic announce itself in two lines.
    log.set_defaults(default_log_levels=[*log.get_default_log_levels(), "alembic=WARN"])
    opts.register_all(conf)
    try:
        conf(
            list(argv),
            project=PROJECT,
            prog=prog,
            default_config_files=cfg.find_config_files(PROJECT, FILE),
            default_config_dirs=cfg.find_config_dirs(PROJECT, FILE),
        )
    except cfg.Error as error:
        raise ConfigurationError(reason=_one_line(error)) from error
    for group, options in opts.list_opts():
        for option in options:
            _check(conf, group, option)


def misspelt(conf: cfg.ConfigOpts) -> list[str]:
    """A sentence for each name in our groups of the configuration files that no option has; oslo.config ignores such silently."""
    known = {group: {name for option in options for name in _names(option)} for group, options in opts.list_opts()}
    # [DEFAULT] is shared with libraries whose options may be registered later.
    known.pop("DEFAULT")
    warnings = []
    for path in conf.config_file or []:
        for group, names in _sections(path).items():
            for name in sorted(names - known.get(group, names)):
                hint = difflib.get_close_matches(name, known[group], n=1)
                advice = f"; did you mean '{hint[0]}'?" if hint else ""
                warnings.append(f"{path}: [{group}] has no option '{name}'{advice}")
    return warnings


def _check(conf: cfg.ConfigOpts, group: str, option: cfg.Opt) -> None:
    values = conf if group == "DEFAULT" else conf[group]
    try:
        getattr(values, option.dest)
    except (ValueError, cfg.Error) as error:
        place = next((path for path in reversed(conf.config_file or []) if _gives(path, group, option)), None)
        where = f"{place}: " if place else ""
        shown = "the value is not valid" if option.secret else f"{_reason(error)}; expected {option.type}"
        raise ConfigurationError(reason=f"{where}[{group}] {option.name}: {shown}") from error


def _gives(path: str, group: str, option: cfg.Opt) -> bool:
    return bool(_sections(path).get(group, set()) & _names(option))


def _names(option: cfg.Opt) -> set[str]:
    old = {deprecated.name for deprecated in option.deprecated_opts if deprecated.name}
    return {name.replace("-", "_") for name in {option.name, option.dest} | old}


def _sections(path: str) -> dict[str, set[str]]:
    sections: dict[str, dict[str, list[str]]] = {}
    cfg.ConfigParser(path, sections).parse()
    return {group: {name.replace("-", "_") for name in values} for group, values in sections.items()}


def _reason(error: Exception) -> str:
    # oslo.config: "Value for option X from LocationInfo(…) is not valid: REASON".
    return _one_line(error).rpartition("is not valid: ")[2]


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
