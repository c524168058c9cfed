# One flow of ns-2 over the study's path, the links between the switches as one link of 8 × 100 Mbit/s:
#
#     ns ns2.tcl VARIANT QUEUE CORE_DELAY_MS SECONDS all-on
#     ns ns2.tcl VARIANT QUEUE CORE_DELAY_MS SECONDS apart
#     ns ns2.tcl VARIANT QUEUE CORE_DELAY_MS SECONDS peaks SECTION_MS INTERVAL_MS PERCENTILE UP_MS
#     ns ns2.tcl VARIANT QUEUE CORE_DELAY_MS SECONDS schedule FILE
#
# VARIANT is ctcp, cubic, westwood or newreno (the TCP/Linux agent's compound, cubic, westwood and reno) or vegas
# (the TCP/Vegas agent). `all-on` keeps 800 Mbit/s. `apart` has eight links of 100 Mbit/s that take packets in turn, with
# an eighth of the queue each. `peaks` is the study's controller: arrivals in bins of 1 ms, the largest bin of each
# section, and the percentile of an interval's peaks as the capacity of the next one. Links go off at once, and come
# on UP_MS after the decision. `schedule` reads lines of a time in seconds and a number of links.
#
# It prints as a row: Mbit/s acknowledged (packets counted as 1,500 octets), packets retransmitted, and the mean number
# of links that were on.

lassign $argv variant queue core_delay_ms duration control
set links 8
set link_rate 1e8
set bin 0.001
array set modules {ctcp compound cubic cubic westwood westwood newreno reno}

# Faster, with the same results: the headers of three layers only, and another order of events at other times.
remove-all-packet-headers
add-packet-header Flags IP TCP
set ns [new Simulator]
$ns use-scheduler Splay

foreach node {host first second peer} {
    set $node [$ns node]
}
$ns duplex-link $host $first 1Gb 5ms DropTail
$ns duplex-link $second $peer 1Gb 5ms DropTail
$ns duplex-link $first $second [expr {$links * $link_rate}] ${core_delay_ms}ms DropTail
foreach {from to} [list $host $first $first $host $second $first $second $peer $peer $second] {
    $ns queue-limit $from $to 100000
}
$ns queue-limit $first $second $queue
set core [[$ns link $first $second] link]

# Headers are 40 octets, and 50 with timestamps.
Agent/TCP set packetSize_ 1460
Agent/TCP set window_ 100000
if {$variant eq "vegas"} {
    set sender [new Agent/TCP/Vegas]
} else {
    set sender [new Agent/TCP/Linux]
    $sender set timestamps_ true
    $ns at 0 "$sender select_ca $modules($variant)"
}
set sink [new Agent/TCPSink/Sack1]
$sink set ts_echo_rfc1323_ true
$ns attach-agent $host $sender
$ns attach-agent $peer $sink
$ns connect $sender $sink
set ftp [new Application/FTP]
$ftp attach-agent $sender

set on $links
set since 0
set on_seconds 0

proc switch_to {wanted} {
    global ns core link_rate on since on_seconds
    set on_seconds [expr {$on_seconds + $on * ([$ns now] - $since)}]
    set since [$ns now]
    set on $wanted
    $core set bandwidth_ [expr {$wanted * $link_rate}]
}

proc measure {} {
    global ns monitor bin seen peak peaks bins section interval
    set arrived [$monitor set barrivals_]
    set peak [expr {max($peak, $arrived - $seen)}]
    set seen $arrived
    incr bins
    if {$bins % $section == 0} {
        lappend peaks $peak
        set peak 0
    }
    if {$bins % $interval == 0} {
        decide
    }
    $ns at [expr {($bins + 1) * $bin}] measure
}

proc decide {} {
    global ns bin peaks percentile up_ms links link_rate on pending
    set place [expr {max(int(ceil($percentile / 100.0 * [llength $peaks])), 1) - 1}]
    set capacity [expr {[lindex [lsort -real $peaks] $place] * 8 / $bin}]
    set peaks {}
    set wanted [expr {min(max(int(ceil($capacity / $link_rate)), 1), $links)}]
    if {$wanted > $on && $up_ms > 0} {
        $ns at [expr {[$ns now] + $up_ms / 1e3}] "switch_to $wanted"
    } elseif {$wanted != $on} {
        switch_to $wanted
    }
}

switch $control {
    all-on {}
    apart {
        set turns [new Classifier/MultiPath]
        for {set i 0} {$i < $links} {incr i} {
            set port [$ns node]
            $ns simplex-link $first $port $link_rate ${core_delay_ms}ms DropTail
            $ns queue-limit $first $port [expr {$queue / $links}]
            $ns simplex-link $port $second 100Gb 0ms DropTail
            $turns installNext [[$ns link $first $port] head]
        }
        $ns at 0 {$first add-route [$peer id] $turns}
    }
    peaks {
        lassign [lrange $argv 5 end] section interval percentile up_ms
        set monitor [$ns monitor-queue $first $second ""]
        lassign {0 0 0 {}} seen peak bins peaks
        $ns at $bin measure
    }
    schedule {
        set file [open [lindex $argv 5]]
        while {[gets $file line] >= 0} {
            lassign $line time wanted
            $ns at $time "switch_to $wanted"
        }
        close $file
    }
}

proc finish {} {
    global sender duration on on_seconds
    switch_to $on
    set mbit_s [expr {[$sender set ack_] * 1500 * 8 / 1e6 / $duration}]
    puts [format "%.1f,%d,%.3f" $mbit_s [$sender set nrexmitpack_] [expr {$on_seconds / $duration}]]
    exit 0
}

$ns at 0 "$ftp start"
$ns at $duration finish
$ns run
