"""Spark sessions: lean, quiet, and nothing left behind."""

from streamjoin_datagen.session.spark import (
    Session,
    check_installed,
    is_running,
    shared_session,
    spark_session,
)

__all__ = ["Session", "check_installed", "is_running", "shared_session", "spark_session"]
