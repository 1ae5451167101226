"""Another name of :mod:`streamjoin_common.language.predicates`."""

from streamjoin_common.language.predicates import Band, Equi, Predicate, Term

__all__ = ["Band", "Equi", "Predicate", "Term"]
