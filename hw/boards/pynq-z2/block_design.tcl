# PYNQ-Z2: Zynq-7000 (XC7Z020). Memory, pins and clocks of the processor itself are set by PYNQ's
# boot image; of what is set here PYNQ takes the clock and the widths of the ports from the .hwh.

create_bd_cell -type ip -vlnv xilinx.com:ip:processing_system7:5.5 ps
set_property -dict [list \
    CONFIG.PCW_EN_CLK0_PORT 1 \
    CONFIG.PCW_FPGA0_PERIPHERAL_FREQMHZ $clock_mhz \
    CONFIG.PCW_EN_RST0_PORT 1 \
    CONFIG.PCW_USE_M_AXI_GP0 1 \
    CONFIG.PCW_USE_S_AXI_HP0 1 \
    CONFIG.PCW_S_AXI_HP0_DATA_WIDTH 64 \
] [get_bd_cells ps]
apply_bd_automation -rule xilinx.com:bd_rule:processing_system7 \
    -config {make_external "FIXED_IO, DDR" Master Disable Slave Disable} [get_bd_cells ps]
make_system ps FCLK_CLK0 FCLK_RESET0_N M_AXI_GP0 S_AXI_HP0 {M_AXI_GP0_ACLK S_AXI_HP0_ACLK} \
    $in_bits $out_bits 32
