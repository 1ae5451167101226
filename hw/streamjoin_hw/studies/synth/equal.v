// Equality of wide operands in as few LUTs as they have inputs for.
//
// Yosys builds a binary tree of bits; cuts of two or four bits then leave inputs of every LUT
// unused. Here groups of GROUP bits fill a LUT each. They are kept, or the tree would be balanced
// again. With CHAIN they are put together by a carry chain (all ones, and one more, overflow).
(* techmap_celltype = "$eq" *)
module streamjoin_equal (A, B, Y);
  parameter A_SIGNED = 0;
  parameter B_SIGNED = 0;
  parameter A_WIDTH = 1;
  parameter B_WIDTH = 1;
  parameter Y_WIDTH = 1;
  parameter _TECHMAP_CONSTMSK_A_ = 0;
  parameter _TECHMAP_CONSTMSK_B_ = 0;

  input [A_WIDTH-1:0] A;
  input [B_WIDTH-1:0] B;
  output [Y_WIDTH-1:0] Y;

  localparam GROUPS = (A_WIDTH + `GROUP - 1) / `GROUP;
  wire _TECHMAP_FAIL_ = A_WIDTH != B_WIDTH || A_WIDTH < 8
    || |_TECHMAP_CONSTMSK_A_ || |_TECHMAP_CONSTMSK_B_;

  (* keep = 1 *) wire [GROUPS-1:0] same;
  genvar i;
  generate
    for (i = 0; i < GROUPS; i = i + 1) begin : group
      localparam FIRST = i * `GROUP;
      localparam BITS = FIRST + `GROUP > A_WIDTH ? A_WIDTH - FIRST : `GROUP;
      assign same[i] = A[FIRST +: BITS] == B[FIRST +: BITS];
    end
  endgenerate
`ifdef CHAIN
  wire [GROUPS:0] sum = {1'b0, same} + 1'b1;
  assign Y = sum[GROUPS];
`else
  assign Y = &same;
`endif
endmodule
