"""Tests that take long are part of ``scripts/faults``, and not of the usual run."""

import os

import pytest

takes_long = pytest.mark.skipif("SSO_TEST_ROUNDS" not in os.environ, reason="takes long: run scripts/faults")
