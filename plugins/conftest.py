"""Tests of plugins that run by themselves have the settings of all tests."""

from run_settings import pytest_configure

__all__ = ["pytest_configure"]
