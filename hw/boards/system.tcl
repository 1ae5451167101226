# What every board's block design has: the design, an AXI DMA, and what joins them to the processor.
#
# The driver finds the cells by name: streamjoin and dma. The DMA runs in direct register mode with
# the longest transfers there are; its streams are as wide as the design's words.

# Make the system around a processor.
#
#   ps         cell of the processor
#   clock      its pin that gives the clock
#   reset      its pin that gives the reset, active low
#   control    its AXI master, for registers
#   memory     its AXI slave, to memory
#   ps_clocks  its pins that take the clocks of these two
#   in_bits    width of a word of input
#   out_bits   width of a word of output
#   address_bits  width of the DMA's addresses
proc make_system {ps clock reset control memory ps_clocks in_bits out_bits address_bits} {
    create_bd_cell -type ip -vlnv streamjoin:streamjoin:streamjoin_board streamjoin

    create_bd_cell -type ip -vlnv xilinx.com:ip:axi_dma:7.1 dma
    set_property -dict [list \
        CONFIG.c_include_sg 0 \
        CONFIG.c_sg_include_stscntrl_strm 0 \
        CONFIG.c_sg_length_width 26 \
        CONFIG.c_addr_width $address_bits \
        CONFIG.c_include_mm2s 1 \
        CONFIG.c_include_mm2s_dre 0 \
        CONFIG.c_m_axis_mm2s_tdata_width $in_bits \
        CONFIG.c_m_axi_mm2s_data_width $in_bits \
        CONFIG.c_mm2s_burst_size 16 \
        CONFIG.c_include_s2mm 1 \
        CONFIG.c_include_s2mm_dre 0 \
        CONFIG.c_m_axi_s2mm_data_width $out_bits \
        CONFIG.c_s2mm_burst_size 16 \
    ] [get_bd_cells dma]

    create_bd_cell -type ip -vlnv xilinx.com:ip:proc_sys_reset:5.0 resets
    create_bd_cell -type ip -vlnv xilinx.com:ip:smartconnect:1.0 to_registers
    set_property -dict [list CONFIG.NUM_SI 1 CONFIG.NUM_MI 2] [get_bd_cells to_registers]
    create_bd_cell -type ip -vlnv xilinx.com:ip:smartconnect:1.0 to_memory
    set_property -dict [list CONFIG.NUM_SI 2 CONFIG.NUM_MI 1] [get_bd_cells to_memory]

    foreach {from to} [list \
        $ps/$control to_registers/S00_AXI \
        to_registers/M00_AXI dma/S_AXI_LITE \
        to_registers/M01_AXI streamjoin/s_axil_ctrl \
        dma/M_AXIS_MM2S streamjoin/s_axis_words \
        streamjoin/m_axis_words dma/S_AXIS_S2MM \
        dma/M_AXI_MM2S to_memory/S00_AXI \
        dma/M_AXI_S2MM to_memory/S01_AXI \
        to_memory/M00_AXI $ps/$memory \
    ] {
        connect_bd_intf_net [get_bd_intf_pins $from] [get_bd_intf_pins $to]
    }

    set clocked {
        resets/slowest_sync_clk to_registers/aclk to_memory/aclk streamjoin/aclk
        dma/s_axi_lite_aclk dma/m_axi_mm2s_aclk dma/m_axi_s2mm_aclk
    }
    foreach pin $ps_clocks {
        lappend clocked $ps/$pin
    }
    foreach pin $clocked {
        connect_bd_net [get_bd_pins $ps/$clock] [get_bd_pins $pin]
    }
    connect_bd_net [get_bd_pins $ps/$reset] [get_bd_pins resets/ext_reset_in]
    foreach pin {to_registers/aresetn to_memory/aresetn streamjoin/aresetn dma/axi_resetn} {
        connect_bd_net [get_bd_pins resets/peripheral_aresetn] [get_bd_pins $pin]
    }
    assign_bd_address
}
