"""Random faults in a cluster of three machines. Run by ``scripts/faults cluster``."""

import os

import pytest

from scripts.local_cluster import cluster, faults, strangers
from scripts.local_cluster.load import Plan

RATE, HELD_POLLS = 4, 200
MINUTES = float(os.environ.get("SSO_TEST_CLUSTER_MINUTES", "0"))


@pytest.mark.skipif(not MINUTES, reason="takes long: run scripts/faults cluster")
def test_no_acknowledged_write_is_lost() -> None:
    cluster.up()
    try:
        strangers.check()
        assert faults.run(Plan(seconds=MINUTES * 60, rate=RATE, confirm_after_s=HELD_POLLS / RATE))
    finally:
        cluster.down()
