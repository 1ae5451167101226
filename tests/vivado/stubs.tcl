# Vivado's commands as far as hw/ip and hw/boards use them: each takes what the real one takes,
# knows what there is to set and to connect, and writes itself down. What is not here is unknown.
#
# Sources: UG835 (Tcl commands), PG021 (AXI DMA 7.1), PG247 (SmartConnect 1.0), PG164 (Processor
# System Reset 5.0), UG585 and PG082 (Zynq-7000 processing system 5.5), PG201 (Zynq UltraScale+
# processing system), UG1118 (packaging IP), UG903 (constraints).

set stub_dir [file dirname [file normalize [info script]]]
set stub_log [open $::env(STUB_LOG) a]
proc record {args} {
    puts $::stub_log $args
    flush $::stub_log
}
proc setting {name default} {
    if {[info exists ::env($name)]} { return $::env($name) }
    return $default
}
proc must_exist {files} {
    foreach file $files {
        if {![file exists $file]} { error "there is no file $file" }
    }
}

# Options of a command: names with a value, names without, and how many words come beside them.
proc options {command words valued flags least most} {
    set found [dict create]
    set rest {}
    for {set i 0} {$i < [llength $words]} {incr i} {
        set word [lindex $words $i]
        if {$word in $valued} {
            dict set found $word [lindex $words [incr i]]
        } elseif {$word in $flags} {
            dict set found $word 1
        } elseif {[string match -* $word]} {
            error "$command has no option $word"
        } else {
            lappend rest $word
        }
    }
    if {[llength $rest] < $least || [llength $rest] > $most} {
        error "$command takes $least to $most words, not [llength $rest]"
    }
    record $command {*}$words
    return [list $found $rest]
}

# What each IP has: interfaces with their side, pins with their direction, what can be set to what.
set widths {32 64 128 256 512 1024}
set ips [dict create \
    xilinx.com:ip:axi_dma [dict create \
        interfaces {S_AXI_LITE slave M_AXI_MM2S master M_AXI_S2MM master M_AXIS_MM2S master S_AXIS_S2MM slave} \
        pins {s_axi_lite_aclk in m_axi_mm2s_aclk in m_axi_s2mm_aclk in axi_resetn in} \
        settings [dict create \
            c_include_sg {0 1} c_sg_include_stscntrl_strm {0 1} c_include_mm2s {0 1} \
            c_include_s2mm {0 1} c_include_mm2s_dre {0 1} c_include_s2mm_dre {0 1} \
            c_sg_length_width {8 to 26} c_addr_width {32 to 64} \
            c_m_axis_mm2s_tdata_width [concat 8 16 $widths] c_m_axi_mm2s_data_width $widths \
            c_m_axi_s2mm_data_width $widths \
            c_mm2s_burst_size {2 4 8 16 32 64 128 256} c_s2mm_burst_size {2 4 8 16 32 64 128 256}]] \
    xilinx.com:ip:smartconnect [dict create \
        interfaces {S00_AXI slave S01_AXI slave M00_AXI master M01_AXI master} \
        pins {aclk in aresetn in} settings {NUM_SI {1 to 16} NUM_MI {1 to 16}}] \
    xilinx.com:ip:proc_sys_reset [dict create interfaces {} \
        pins {slowest_sync_clk in ext_reset_in in peripheral_aresetn out} settings {}] \
    xilinx.com:ip:processing_system7 [dict create \
        interfaces {M_AXI_GP0 master S_AXI_HP0 slave} \
        pins {FCLK_CLK0 out FCLK_RESET0_N out M_AXI_GP0_ACLK in S_AXI_HP0_ACLK in} \
        settings {PCW_EN_CLK0_PORT {0 1} PCW_FPGA0_PERIPHERAL_FREQMHZ {1 to 250} PCW_EN_RST0_PORT {0 1} \
            PCW_USE_M_AXI_GP0 {0 1} PCW_USE_S_AXI_HP0 {0 1} PCW_S_AXI_HP0_DATA_WIDTH {32 64}}] \
    xilinx.com:ip:zynq_ultra_ps_e [dict create \
        interfaces {M_AXI_HPM0_FPD master S_AXI_HP0_FPD slave} \
        pins {pl_clk0 out pl_resetn0 out maxihpm0_fpd_aclk in saxihp0_fpd_aclk in} \
        settings {PSU__FPGA_PL0_ENABLE {0 1} PSU__CRL_APB__PL0_REF_CTRL__FREQMHZ {1 to 500} \
            PSU__USE__M_AXI_GP0 {0 1} PSU__USE__M_AXI_GP1 {0 1} PSU__USE__M_AXI_GP2 {0 1} \
            PSU__MAXIGP0__DATA_WIDTH {32 64 128} PSU__USE__S_AXI_GP2 {0 1} \
            PSU__SAXIGP2__DATA_WIDTH {32 64 128}}]]
set parts {xc7z020clg400-1 xczu7ev-ffvc1156-2-e xck26-sfvc784-2LV-c}
set cells [dict create]
set linked [dict create]

proc legal {value choices} {
    if {[lindex $choices 1] eq "to"} {
        return [expr {$value >= [lindex $choices 0] && $value <= [lindex $choices 2]}]
    }
    return [expr {$value in $choices}]
}

# Projects, files, properties.
proc version {args} { options version $args {} -short 0 0; return [setting STUB_VERSION 2023.2] }
proc create_project {args} {
    lassign [options create_project $args -part -force 2 2] found rest
    if {[dict get $found -part] ni $::parts} { error "unknown part [dict get $found -part]" }
    file mkdir [lindex $rest 1]
    set ::project [lindex $rest 1]
}
proc close_project {} { record close_project }
proc current_project {} { return project }
proc current_fileset {} { return sources_1 }
proc current_design {} { return design }
proc add_files {args} {
    lassign [options add_files $args -fileset -norecurse 1 1] found rest
    must_exist [lindex $rest 0]
    foreach file [lindex $rest 0] {
        if {[string match *.v $file]} { set ::added $file }
        if {[string match *.xdc $file]} { uplevel #0 [list source $file] }
    }
}
proc get_files {args} { options get_files $args {} {} 1 1; return [lindex $args 0] }
proc update_compile_order {args} { options update_compile_order $args -fileset {} 0 0 }
proc update_ip_catalog {} {
    record update_ip_catalog
    must_exist [list [file join $::repository component.xml]]
}
proc set_property {args} {
    lassign [options set_property $args -dict {} 1 3] found rest
    if {[dict exists $found -dict]} {
        foreach {name value} [dict get $found -dict] { set_one $name $value [lindex $rest 0] }
    } else {
        set_one {*}$rest
    }
}
proc set_one {name value target} {
    if {[dict exists $::cells $target]} {
        set settings [dict get $::ips [dict get $::cells $target] settings]
        set key [string range $name 7 end]
        if {![string match CONFIG.* $name] || ![dict exists $settings $key]} {
            error "$target has no property $name"
        }
        if {![legal $value [dict get $settings $key]]} {
            error "$name of $target cannot be $value, only [dict get $settings $key]"
        }
        set ::configured($target,$key) $value
        return
    }
    set known {
        project ip_repo_paths sources_1 top design BITSTREAM.GENERAL.COMPRESS
        core name core version core core_revision core display_name core description
    }
    set found 0
    foreach {kind property} $known {
        if {$kind eq $target && $property eq $name} { set found 1 }
    }
    if {[string match *.xdc $target] && $name eq "USED_IN"} { set found 1 }
    if {!$found} { error "$target has no property $name" }
    if {$name eq "ip_repo_paths"} { set ::repository [lindex $value 0]; must_exist $value }
    if {$name eq "version" && ![regexp {^\d+\.\d+$} $value]} { error "no version: $value" }
    if {$name eq "core_revision" && ![string is entier -strict $value]} { error "no number: $value" }
}

# Packaging.
proc ports_of {file} {
    set text [read [set handle [open $file]]]
    close $handle
    if {![regexp {module streamjoin_board\s*\(([^)]*)\)} $text _ names]} {
        error "$file has no module streamjoin_board"
    }
    return [regexp -all -inline {\w+} $names]
}
namespace eval ipx {
    proc package_project {args} {
        lassign [options ipx::package_project $args \
            {-root_dir -vendor -library -taxonomy -set_current} -import_files 0 0] found
        set ::core_dir [dict get $found -root_dir]
        foreach port [ports_of $::added] {
            if {[regexp {^([sm])_(axis?|axil)_(\w+?)_(\w+)$} $port _ side kind name signal]} {
                dict lappend ::inferred "${side}_${kind}_$name" $signal
            }
        }
    }
    proc current_core {} { return core }
    proc get_bus_interfaces {args} {
        lassign [options ipx::get_bus_interfaces $args -of_objects {} 1 1] found rest
        set needs {tdata tvalid tready}
        if {[string match *axil* $rest]} { set needs {awaddr awvalid awready araddr rdata wstrb} }
        if {![dict exists $::inferred $rest]} { return {} }
        foreach signal $needs {
            if {$signal ni [dict get $::inferred $rest]} { return {} }
        }
        return [list $rest]
    }
    proc associate_bus_interfaces {args} {
        lassign [options ipx::associate_bus_interfaces $args {-busif -clock -reset} {} 1 1] found
        foreach option {-clock -reset} {
            if {[dict get $found $option] ni [ports_of $::added]} { error "no port for $option" }
        }
    }
    foreach name {create_xgui_files update_checksums check_integrity} {
        proc $name {core} [list record ipx::$name]
    }
    proc save_core {core} {
        record ipx::save_core
        close [open [file join $::core_dir component.xml] w]
        set interfaces {}
        foreach bus [dict keys $::inferred] {
            lappend interfaces $bus [expr {[string match s_* $bus] ? "slave" : "master"}]
        }
        dict set ::ips streamjoin:streamjoin:streamjoin_board \
            [dict create interfaces $interfaces pins {aclk in aresetn in} settings {}]
    }
}

# Block designs.
proc create_bd_design {name} { record create_bd_design $name; set ::design $name }
proc create_bd_cell {args} {
    lassign [options create_bd_cell $args {-type -vlnv} {} 1 1] found name
    set ip [join [lrange [split [dict get $found -vlnv] :] 0 2] :]
    if {![dict exists $::ips $ip]} { error "there is no IP $ip" }
    if {[dict exists $::cells $name]} { error "there is a cell $name already" }
    dict set ::cells $name $ip
    return $name
}
proc get_bd_cells {name} {
    if {![dict exists $::cells $name]} { error "there is no cell $name" }
    return $name
}
proc part_of {path kind} {
    lassign [split $path /] cell name
    if {![dict exists $::cells $cell]} { error "there is no cell $cell" }
    set all [dict get $::ips [dict get $::cells $cell] $kind]
    if {![dict exists $all $name]} { error "$cell has no $name among its $kind" }
    return [dict get $all $name]
}
proc get_bd_pins {path} { part_of $path pins; return $path }
proc get_bd_intf_pins {path} { part_of $path interfaces; return $path }
proc linked_once {path} {
    if {[dict exists $::linked $path]} { error "$path is connected twice" }
    dict set ::linked $path 1
}
proc connect_bd_intf_net {args} {
    lassign [options connect_bd_intf_net $args {} {} 2 2] _ ends
    lassign $ends from to
    if {[part_of $from interfaces] ne "master" || [part_of $to interfaces] ne "slave"} {
        error "$from cannot drive $to"
    }
    linked_once $from
    linked_once $to
}
proc connect_bd_net {args} {
    lassign [options connect_bd_net $args {} {} 2 2] _ ends
    lassign $ends from to
    if {[part_of $from pins] ne "out" || [part_of $to pins] ne "in"} { error "$from cannot drive $to" }
    linked_once $to
}
proc apply_bd_automation {args} {
    lassign [options apply_bd_automation $args {-rule -config} {} 1 1] found cell
    if {[dict get $found -rule] ne "xilinx.com:bd_rule:processing_system7"} { error "unknown rule" }
    dict get [dict get $found -config] make_external
}
proc assign_bd_address {} { record assign_bd_address; set ::assigned 1 }
proc validate_bd_design {} {
    record validate_bd_design
    dict for {cell ip} $::cells {
        foreach {pin direction} [dict get $::ips $ip pins] {
            if {$direction eq "in" && ![dict exists $::linked $cell/$pin]} {
                error "$cell/$pin is not connected"
            }
        }
        foreach {name side} [dict get $::ips $ip interfaces] {
            set beyond [expr {[regexp {^([SM])0(\d)_AXI$} $name _ face place] &&
                $place >= $::configured($cell,NUM_${face}I)}]
            if {$beyond && [dict exists $::linked $cell/$name]} { error "$cell has no $name" }
            if {!$beyond && ![dict exists $::linked $cell/$name]} { error "$cell/$name is open" }
        }
    }
    if {![info exists ::assigned]} { error "addresses are not assigned" }
    set ::validated 1
    if {$::configured(dma,c_m_axis_mm2s_tdata_width) != $::in_bits} { error "stream of another width" }
    foreach {memory stream} [list mm2s $::in_bits s2mm $::out_bits] {
        if {$::configured(dma,c_m_axi_${memory}_data_width) < $stream} { error "$memory is too narrow" }
    }
}
proc save_bd_design {} { record save_bd_design }
proc generate_target {what file} {
    record generate_target $what $file
    set folder [file join $::project streamjoin.gen sources_1 bd $::design hw_handoff]
    file mkdir $folder
    puts [set handle [open [file join $folder $::design.hwh] w]] "<hwh/>"
    close $handle
}
proc make_wrapper {args} {
    options make_wrapper $args -files -top 0 0
    set file [file join $::project ${::design}_wrapper.v]
    close [open $file w]
    return $file
}

# Runs.
proc launch_runs {args} {
    lassign [options launch_runs $args {-to_step -jobs} {} 1 1] found run
    set ::run_step($run) [expr {[dict exists $found -to_step] ? [dict get $found -to_step] : "synth_design"}]
}
proc wait_on_run {run} { record wait_on_run $run }
proc get_runs {run} { return $run }
# The processor's clock, divided from its PLL by an integer.
proc clock_hz {pin} {
    if {![info exists ::validated]} { error "$pin has no frequency before the design is validated" }
    if {![dict exists $::linked $pin]} { error "$pin is not connected" }
    foreach {setting pll_mhz} {PCW_FPGA0_PERIPHERAL_FREQMHZ 1000.0 PSU__CRL_APB__PL0_REF_CTRL__FREQMHZ 1499.985} {
        if {[info exists ::configured(ps,$setting)]} {
            return [expr {round(1e6 * $pll_mhz / ceil($pll_mhz / $::configured(ps,$setting) - 0.01))}]
        }
    }
    error "$pin has no clock"
}
proc get_property {name run} {
    record get_property $name $run
    if {$name eq "CONFIG.FREQ_HZ"} { return [clock_hz $run] }
    set folder [file join $::project streamjoin.runs $run]
    switch $name {
        STATUS {
            if {[setting STUB_FAILS ""] eq $::run_step($run)} { return "$::run_step($run) ERROR" }
            if {$::run_step($run) eq "write_bitstream"} {
                file mkdir $folder
                close [open [file join $folder system_wrapper.bit] w]
            }
            return "$::run_step($run) Complete!"
        }
        STATS.WNS { return [setting STUB_WNS 0.412] }
        STATS.WHS { return [setting STUB_WHS 0.031] }
        DIRECTORY { return $folder }
        default { error "$run has no property $name" }
    }
}
proc open_run {run} { record open_run $run }
proc close_design {} { record close_design }
proc report_timing_summary {args} {
    lassign [options report_timing_summary $args -file {} 0 0] found
    close [open [dict get $found -file] w]
}
proc report_utilization {args} {
    lassign [options report_utilization $args -file {} 0 0] found
    set kind [expr {[string match xc7* $::part] ? "zynq-7000" : "ultrascale"}]
    set sample [file join $::stub_dir [setting STUB_UTILIZATION utilization-$kind.rpt]]
    file copy -force $sample [dict get $found -file]
}

proc report_timing {args} {
    options report_timing $args -max_paths -return_string 0 0
    return "the worst path"
}

# Constraints.
proc create_clock {args} {
    lassign [options create_clock $args {-name -period} {} 1 1] found
    set asked_ns [expr {1e3 / $::clock_mhz}]
    if {abs([dict get $found -period] - $asked_ns) > 0.001} { error "the IP is built for another clock" }
}
proc get_ports {name} {
    if {$name ni [ports_of $::added]} { error "a constraint names the port $name, which is none" }
    return $name
}

# As vivado -mode batch: -source FILE -tclargs WORDS...; an error ends it with status 1.
set place [lsearch -exact $argv -tclargs]
set source_file [lindex $argv [expr {[lsearch -exact $argv -source] + 1}]]
set argv [lrange $argv [expr {$place + 1}] end]
if {[catch {source $source_file} message]} {
    puts "ERROR: $message"
    exit 1
}
