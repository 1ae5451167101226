"""Spark sessions: lean, quiet, and nothing left behind."""
