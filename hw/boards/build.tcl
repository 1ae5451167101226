# Build a board's bitstream: vivado -mode batch -source build.tcl -tclargs FOLDER OUT
#
# FOLDER holds the design and design.tcl, which `streamjoin hw bitstream` writes: verilog, version,
# revision, description, in_bits, out_bits, part, board, clock_mhz, ip_constraints, root, jobs. Into OUT go streamjoin.bit,
# streamjoin.hwh, the reports, and figures.txt with a name and a value a line. Whatever fails ends
# with an error; a design that misses its timing gets no bitstream.

set oldest 2022.1
lassign $argv folder out
source [file join $folder design.tcl]

set have [version -short]
if {[package vcompare [lindex [regexp -inline {^[0-9]+\.[0-9]+} $have] 0] $oldest] < 0} {
    error "Vivado $have is too old: $oldest or newer is needed"
}
set boards [file join $root hw boards]
set constraints [file join $root constraints]

set ip_dir [file join $folder ip]
source [file join $root hw ip package_ip.tcl]

create_project streamjoin [file join $folder project] -part $part
set_property ip_repo_paths [list $ip_dir] [current_project]
update_ip_catalog
create_bd_design system
source [file join $boards system.tcl]
source [file join $boards $board block_design.tcl]
validate_bd_design
# The processor divides its clocks by integers: what it gives is near what was asked for.
set given_hz [get_property CONFIG.FREQ_HZ [get_bd_pins streamjoin/aclk]]
save_bd_design
set design_file [get_files system.bd]
generate_target all $design_file
add_files -norecurse [list [make_wrapper -files $design_file -top]]
add_files -fileset constrs_1 -norecurse [list [file join $constraints $board streamjoin.xdc]]
set_property top system_wrapper [current_fileset]
update_compile_order -fileset sources_1

proc finish {run step} {
    global jobs
    if {$step eq ""} {
        launch_runs $run -jobs $jobs
    } else {
        launch_runs $run -to_step $step -jobs $jobs
    }
    wait_on_run $run
    set status [get_property STATUS [get_runs $run]]
    if {[string match *ERROR* $status] || ![string match *Complete* $status]} {
        error "$run ended as: $status"
    }
}

finish synth_1 ""
finish impl_1 route_design
open_run impl_1
file mkdir $out
report_timing_summary -file [file join $out timing.rpt]
report_utilization -file [file join $out utilization.rpt]
set setup_ns [get_property STATS.WNS [get_runs impl_1]]
set hold_ns [get_property STATS.WHS [get_runs impl_1]]
if {$setup_ns eq "" || $hold_ns eq "" || $setup_ns < 0 || $hold_ns < 0} {
    puts [report_timing -max_paths 1 -return_string]
    set advice ""
    if {$setup_ns ne "" && $setup_ns < 0} {
        set met_mhz [expr {floor(1e3 / (1e9 / $given_hz - $setup_ns))}]
        set advice "; by that path [format %.0f $met_mhz] MHz would do: --clock, or fewer cores"
    }
    error "timing is missed: worst slack $setup_ns ns for setup, $hold_ns ns for hold$advice"
}
close_design
finish impl_1 write_bitstream

set bits [file join [get_property DIRECTORY [get_runs impl_1]] system_wrapper.bit]
file copy -force $bits [file join $out streamjoin.bit]
set handoff [glob -directory [file join $folder project] streamjoin.*/sources_1/bd/system/hw_handoff/system.hwh]
file copy -force [lindex $handoff 0] [file join $out streamjoin.hwh]
set figures [open [file join $out figures.txt] w]
puts $figures "vivado $have"
puts $figures "clock_hz $given_hz"
puts $figures "worst_setup_slack_ns $setup_ns"
puts $figures "worst_hold_slack_ns $hold_ns"
close $figures
