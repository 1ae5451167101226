"""The order of results that is asked for and promised."""

from typing import Any, Literal, TypeVar, get_args

from streamjoin_common.errors import InputError
from streamjoin_common.suggestions import did_you_mean

Order = Literal["none", "outer", "inner"]

ORDERS: tuple[Order, ...] = get_args(Order)
"""Order promises, from the weakest."""

Numbers = TypeVar("Numbers", bound=Any)
"""A number, or an array of them."""


def group_numbers(later: Numbers, group: int) -> Numbers:
    """Return by what an outer order that is relaxed puts results: the groups of later tuples.

    Arrivals of both streams are counted together from 0, the first one of an input, and each
    ``group`` of them is one; all are with 0. Results of one group are in any order. Groups of 1
    are the outer order itself.
    """
    numbers: Numbers = later // group if group else later * 0
    return numbers


def check_order(order: object) -> None:
    """Refuse what is no order.

    Raises
    ------
    InputError
        Naming the orders.
    """
    if order not in ORDERS:
        near = did_you_mean(order, ORDERS)
        raise InputError(f"order must be one of {', '.join(ORDERS)}, not {order!r}{near}")
