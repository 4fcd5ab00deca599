"""The tables of fleet operations: epochs, moves, evacuations, reports of load and the circuit breaker."""

from __future__ import annotations

import sqlalchemy as sa

from lbaas_scheduler.db.models import Id, UtcDateTime, required, table

epochs = table(
    "epochs",
    # Of resources that had more than one: the highest that was ever given to a deployment of the resource, gone or not.
    sa.Column("resource_id", Id, primary_key=True),
    required("epoch", sa.Integer),
)

moves = table(
    "moves",
    # One per resource: of two that want to move it at once, one wins. It stays when it is over, until the next one or the
    # resource's end, so that its outcome can be read.
    sa.Column("resource_id", Id, primary_key=True),
    required("id", Id),
    required("service", sa.String(64)),
    sa.Column("source_id", Id, nullable=False, index=True),
    # NULL: the scheduler will choose when the move begins.
    sa.Column("target_id", Id, index=True),
    sa.Column("state", sa.String(16), nullable=False, index=True),
    required("cause", sa.String(16)),
    # Ids of devices that failed to take it.
    required("tried", sa.JSON, list),
    required("attempts", sa.Integer, 0),
    required("error", sa.Text, ""),
    # Queued: when to begin. Deploying: until when the target has time. NULL: nothing is to be done by the clock.
    sa.Column("due_at", UtcDateTime, index=True),
    required("created_at", UtcDateTime),
    required("updated_at", UtcDateTime),
)

evacuations = table(
    "evacuations",
    sa.Column("device_id", Id, sa.ForeignKey("devices.id", ondelete="CASCADE"), primary_key=True),
    # How many resources were there at the start.
    required("total", sa.Integer),
    required("started_at", UtcDateTime),
    sa.Column("finished_at", UtcDateTime),
    required("cancelled", sa.Boolean, False),
)

device_reports = table(
    "device_reports",
    # What agents said of devices whose handlers cannot ask them. Apart from the devices, whose rows every placement refers to.
    sa.Column("device_id", Id, sa.ForeignKey("devices.id", ondelete="CASCADE"), primary_key=True),
    # Open now, over all VIPs on the device.
    required("connections", sa.BigInteger),
    required("reported_at", UtcDateTime),
)

breakers = table(
    "breakers",
    # "devices" or "agents": of what too many vanished.
    sa.Column("kind", sa.String(16), primary_key=True),
    # NULL: closed, nothing is frozen.
    sa.Column("tripped_at", UtcDateTime),
    # Losses from before an administrator said "go on" do not count again.
    sa.Column("acknowledged_at", UtcDateTime),
    required("reason", sa.Text, ""),
)
