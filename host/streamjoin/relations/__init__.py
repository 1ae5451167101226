"""Stores of a relation that does not fit into memory, all read in one way: by ranges of rows."""

from streamjoin.relations.base import Partition, Projection, Store
from streamjoin.relations.catalog import KINDS, open_store, write_store
from streamjoin.relations.source import Relation, relation

__all__ = [
    "KINDS",
    "Partition",
    "Projection",
    "Relation",
    "Store",
    "open_store",
    "relation",
    "write_store",
]
