# ZCU104: Zynq UltraScale+ (XCZU7EV). Memory, pins and clocks of the processor itself are set by
# PYNQ's boot image; of what is set here PYNQ takes the clock and the widths of the ports from the
# .hwh. The version of the processor's IP is the one that Vivado has.

create_bd_cell -type ip -vlnv xilinx.com:ip:zynq_ultra_ps_e ps
set_property -dict [list \
    CONFIG.PSU__FPGA_PL0_ENABLE 1 \
    CONFIG.PSU__CRL_APB__PL0_REF_CTRL__FREQMHZ $clock_mhz \
    CONFIG.PSU__USE__M_AXI_GP0 1 \
    CONFIG.PSU__USE__M_AXI_GP1 0 \
    CONFIG.PSU__USE__M_AXI_GP2 0 \
    CONFIG.PSU__MAXIGP0__DATA_WIDTH 32 \
    CONFIG.PSU__USE__S_AXI_GP2 1 \
    CONFIG.PSU__SAXIGP2__DATA_WIDTH 128 \
] [get_bd_cells ps]
make_system ps pl_clk0 pl_resetn0 M_AXI_HPM0_FPD S_AXI_HP0_FPD \
    {maxihpm0_fpd_aclk saxihp0_fpd_aclk} $in_bits $out_bits 64
