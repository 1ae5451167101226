# Package a design for boards as an IP that Vivado's block designs take.
#
# Sourced with these set, as design.tcl of `streamjoin hw bitstream` does:
#   verilog      file with the module streamjoin_board
#   version      of the IP, MAJOR.MINOR
#   revision     of the IP, an integer
#   description  parameters and digest of the design
# and by the caller:
#   part         what it is packaged for
#   ip_dir       where to; packaged anew if it is there
#   ip_constraints  file of constraints that travel with the IP

set package_dir [file join $ip_dir package]
file delete -force $ip_dir
file mkdir $ip_dir
create_project streamjoin_ip $package_dir -part $part
add_files -norecurse [list $verilog]
add_files -fileset constrs_1 -norecurse [list $ip_constraints]
set_property USED_IN {synthesis implementation out_of_context} [get_files [file tail $ip_constraints]]
set_property top streamjoin_board [current_fileset]
update_compile_order -fileset sources_1

# Names of the ports are those that Vivado infers AXI interfaces from.
ipx::package_project -root_dir $ip_dir -vendor streamjoin -library streamjoin \
    -taxonomy /UserIP -import_files -set_current true
set core [ipx::current_core]
set_property name streamjoin_board $core
set_property version $version $core
set_property core_revision $revision $core
set_property display_name "Stream join" $core
set_property description $description $core
foreach bus {s_axis_words m_axis_words s_axil_ctrl} {
    if {[llength [ipx::get_bus_interfaces $bus -of_objects $core]] != 1} {
        error "the IP has no interface $bus: its ports are not what Vivado infers AXI from"
    }
    ipx::associate_bus_interfaces -busif $bus -clock aclk -reset aresetn $core
}
ipx::create_xgui_files $core
ipx::update_checksums $core
ipx::check_integrity $core
ipx::save_core $core
close_project
