"""One Spark session for all tests of the generator; starting one takes seconds."""

from collections.abc import Iterator

import pytest

from streamjoin_datagen.session import Session, spark_session


@pytest.fixture(scope="session")
def session() -> Iterator[Session]:
    with spark_session(2) as running:
        yield running
