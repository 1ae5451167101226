"""The contract of a design that decides kinds of join: layouts, registers, what it refuses."""

import dataclasses
from typing import Any

import pytest

from streamjoin_common.contract import (
    JOIN_KINDS,
    DesignParams,
    ParameterError,
    Theta,
    ThetaError,
    c_header,
    registers,
    result_word_bits,
)
from streamjoin_common.contract import result_layout as result_layout_of
from streamjoin_common.language import kinds as language
from streamjoin_hw.rtl.predicates import check_theta

PARAMS = DesignParams(
    cores=1, segment_tuples=40, forward="fast", kinds="all", payload_bits=10, window_memory="bram"
)


def test_the_contract_counts_the_kinds_as_the_language_names_them() -> None:
    assert JOIN_KINDS == language.KINDS


def test_which_side_is_missing_stands_in_the_data_that_a_dma_carries() -> None:
    names = [field.name for field in result_layout_of(PARAMS)]
    assert names == ["r_payload", "s_payload", "r_missing", "s_missing"]
    bits = {
        payload: result_word_bits(dataclasses.replace(PARAMS, payload_bits=payload))
        for payload in (31, 32)
    }
    assert bits == {31: 64, 32: 128}
    header = c_header(PARAMS)
    assert "#define STREAMJOIN_RESULT_R_MISSING_OFFSET 20" in header
    assert "#define STREAMJOIN_REG_KIND 0x28" in header
    inner = dataclasses.replace(PARAMS, kinds="inner")
    assert [field.name for field in result_layout_of(inner)] == names[:2]
    assert "kind" not in [register.name for register in registers(inner)]


def test_a_chain_in_lock_step_decides_no_kinds() -> None:
    sentence = (
        "kinds must be inner where a chain forwards by step, take forward=fast for the others, "
        "not 'all'"
    )
    with pytest.raises(ParameterError, match=f"^{sentence}$"):
        DesignParams(cores=2, segment_tuples=4, kinds="all")
    with pytest.raises(ParameterError, match=r"^kinds must be one of inner, all, not 'left'$"):
        DesignParams(cores=2, segment_tuples=4, kinds="left")


def sum_of_payloads(r: Any, s: Any) -> Any:
    return r.payload + s.payload == 0


def test_a_predicate_of_ones_own_sees_no_payload_where_it_is_kept_elsewhere() -> None:
    plain = DesignParams(cores=1, segment_tuples=4, forward="fast", theta=Theta.of(sum_of_payloads))
    check_theta(plain)
    with pytest.raises(ThetaError, match="not payload: give a term key:TYPE for every column"):
        check_theta(dataclasses.replace(plain, kinds="all"))


def test_a_design_of_inner_joins_keeps_its_identity() -> None:
    plain = DesignParams(cores=2, segment_tuples=4, forward="fast")
    assert "kinds" not in plain.to_dict()
    assert plain.array is plain
    assert DesignParams.from_dict(PARAMS.to_dict()) == PARAMS
    assert PARAMS.array.array == PARAMS.array
