"""Composition roots: each builds the objects of one process, wires them and starts them."""

import warnings

from oslo_service.backend import BackendType, register_backend_default_hook

# We use threads only. oslo.messaging imports oslo.service, which loads its eventlet backend unless told otherwise before; other
# libraries import eventlet where it is installed, never use it, and would have each command begin with its obituary.
register_backend_default_hook(lambda: BackendType.THREADING)
warnings.filterwarnings("ignore", message=r"\s*Eventlet is deprecated")
