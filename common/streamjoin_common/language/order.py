"""The order of results that is asked for and promised."""

from streamjoin_common.errors import InputError

ORDERS = ("none", "outer", "inner")
"""Order promises, from the weakest."""


def check_order(order: object) -> None:
    """Refuse what is no order.

    Raises
    ------
    InputError
        Naming the orders.
    """
    if order not in ORDERS:
        raise InputError(f"order must be one of {', '.join(ORDERS)}, not {order!r}")
