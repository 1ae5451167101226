"""The order of results that is asked for and promised."""

from typing import Literal, get_args

from streamjoin_common.errors import InputError
from streamjoin_common.suggestions import did_you_mean

Order = Literal["none", "outer", "inner"]

ORDERS: tuple[Order, ...] = get_args(Order)
"""Order promises, from the weakest."""


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
