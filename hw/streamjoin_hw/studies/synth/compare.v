// Comparison of wide unsigned operands, two bits a LUT: one output says that both bits are equal,
// the other one which operand is greater where they are not, and the carry chain puts the pairs
// together. Yosys takes three LUTs for four bits.
(* techmap_celltype = "$lt $le $gt $ge" *)
module streamjoin_compare (A, B, Y);
  parameter A_SIGNED = 0;
  parameter B_SIGNED = 0;
  parameter A_WIDTH = 1;
  parameter B_WIDTH = 1;
  parameter Y_WIDTH = 1;
  parameter _TECHMAP_CELLTYPE_ = "";
  parameter _TECHMAP_CONSTMSK_A_ = 0;
  parameter _TECHMAP_CONSTMSK_B_ = 0;

  input [A_WIDTH-1:0] A;
  input [B_WIDTH-1:0] B;
  output [Y_WIDTH-1:0] Y;

  wire _TECHMAP_FAIL_ = A_SIGNED || B_SIGNED || A_WIDTH != B_WIDTH || A_WIDTH < 16 || A_WIDTH % 16
    || |_TECHMAP_CONSTMSK_A_ || |_TECHMAP_CONSTMSK_B_;

  // Whether `x > y`, or `x >= y`, which is what is carried in if all bits are equal.
  localparam SWAPS = _TECHMAP_CELLTYPE_ == "$lt" || _TECHMAP_CELLTYPE_ == "$le";
  localparam EQUAL = _TECHMAP_CELLTYPE_ == "$le" || _TECHMAP_CELLTYPE_ == "$ge";
  localparam PAIRS = A_WIDTH / 2;
  wire [A_WIDTH-1:0] x = SWAPS ? B : A;
  wire [A_WIDTH-1:0] y = SWAPS ? A : B;
  wire [PAIRS-1:0] same, greater;
  wire [PAIRS:0] carry;
  assign carry[0] = EQUAL;
  genvar i;
  generate
    for (i = 0; i < PAIRS; i = i + 1) begin : pair
      // Inputs from the lowest: x, y of the lower bit, x, y of the upper one.
      LUT6_2 #(.INIT(64'h0000_9009_0000_20F2)) both (
        .I0(x[2*i]), .I1(y[2*i]), .I2(x[2*i+1]), .I3(y[2*i+1]), .I4(1'b0), .I5(1'b1),
        .O5(greater[i]), .O6(same[i])
      );
    end
    for (i = 0; i < PAIRS; i = i + `CHAIN) begin : chain
`ifdef CARRY8
      CARRY8 eight (
        .CI(carry[i]), .CI_TOP(1'b0), .DI(greater[i +: 8]), .S(same[i +: 8]), .CO(carry[i+1 +: 8])
      );
`else
      CARRY4 four (
        .CI(i == 0 ? 1'b0 : carry[i]), .CYINIT(i == 0 ? carry[0] : 1'b0),
        .DI(greater[i +: 4]), .S(same[i +: 4]), .CO(carry[i+1 +: 4])
      );
`endif
    end
  endgenerate
  assign Y = carry[PAIRS];
endmodule
