"""Sphinx configuration. Only pages, docstrings and the table of routes: a build takes seconds and needs no network."""

import configparser
import sys
from pathlib import Path

from docutils.parsers.rst import Directive

# As with every command: oslo.service runs on threads, and nothing is said about eventlet, which libraries import and nobody uses.
import lbaas_scheduler.cmd  # noqa: F401

sys.path.insert(0, str(Path(__file__).parents[2]))
from tools import apipage

_setup = configparser.ConfigParser(interpolation=None)
_setup.read(Path(__file__).parents[2] / "setup.cfg")

project = "lbaas-scheduler"
author = copyright = "the lbaas-scheduler authors"
release = version = _setup["metadata"]["version"]

extensions = ["sphinx.ext.autodoc"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "separated"
python_use_unqualified_type_names = True

html_theme = "alabaster"
html_theme_options = {"description": "VIPs onto a fleet of vendors' load balancers", "fixed_sidebar": True}
html_show_sourcelink = False
nitpicky = False


class RestApi(Directive):
    """``.. rest-api::`` stands for all operations of the REST API."""

    def run(self):
        self.state_machine.insert_input(apipage.text().splitlines(), apipage.__file__)
        return []


def setup(app):
    app.add_directive("rest-api", RestApi)
