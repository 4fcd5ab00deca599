"""Composition roots: each builds the objects of one process, wires them and starts them."""

import os
import warnings

from oslo_service.backend import BackendType, register_backend_default_hook

# oslo.service brings eventlet along, and futurist imports it wherever it is. Without its own resolver, which nobody uses, that
# takes a fifth less of each start.
os.environ.setdefault("EVENTLET_NO_GREENDNS", "yes")

# We use threads only. oslo.messaging imports oslo.service, which loads its eventlet backend unless told otherwise before; other
# libraries import eventlet where it is installed, never use it, and would have each command begin with its obituary.
register_backend_default_hook(lambda: BackendType.THREADING)
warnings.filterwarnings("ignore", message=r"\s*Eventlet is deprecated")
