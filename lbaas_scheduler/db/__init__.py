"""The database: tables, transactions, one store module per noun."""

# So that the metadata is whole, whichever store is imported.
from lbaas_scheduler.db import allocator_models as allocator_models
from lbaas_scheduler.db import fleet_models as fleet_models
from lbaas_scheduler.db import restore_models as restore_models
from lbaas_scheduler.db import rule_models as rule_models
