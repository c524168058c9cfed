# Bulk flows of two congestion controls through one RED queue in ns-2:
#
#     ns ns2-fairness.tcl FIRST SECOND FLOWS RTT_MS SEED
#
# 100 Mbit/s, FLOWS flows of each control by the TCP/Linux agent. Those of the first start at 0 s, the second's within
# a second after. Over 60 s from 0 s it prints as a row: both controls, FLOWS, RTT_MS, SEED, the Mbit/s of each (packets
# acknowledged, counted as 1,500 bytes), the share of packets dropped, and the mean queue in packets.

lassign $argv first second flows rtt_ms seed
set duration 60
ns-random $seed

Queue/RED set thresh_ 1
Queue/RED set maxthresh_ 9999
Queue/RED set linterm_ 5 ;# 1 / max_p
Queue/RED set q_weight_ 0.002
Queue/RED set gentle_ false
Queue/RED set bytes_ false
Queue/RED set queue_in_bytes_ false
Queue/RED set mean_pktsize_ 1500
# With the 50 bytes of headers that the agent adds: 1,510 on the wire.
Agent/TCP set packetSize_ 1460
Agent/TCP set window_ 1000000
Agent/TCP/Linux set timestamps_ true

set ns [new Simulator]
set left [$ns node]
set right [$ns node]
$ns simplex-link $left $right 100Mb [expr {$rtt_ms / 2.0}]ms RED
$ns simplex-link $right $left 100Mb [expr {$rtt_ms / 2.0}]ms DropTail
$ns queue-limit $left $right 10000
$ns queue-limit $right $left 100000
set monitor [$ns monitor-queue $left $right [open /dev/null w] 0.01]

set starts [new RNG]
$starts seed $seed
foreach control [list $first $second] from {0 1} {
    for {set i 0} {$i < $flows} {incr i} {
        set sender [new Agent/TCP/Linux]
        set sink [new Agent/TCPSink/Sack1]
        $sink set ts_echo_rfc1323_ true
        $ns attach-agent $left $sender
        $ns attach-agent $right $sink
        $ns connect $sender $sink
        set ftp [new Application/FTP]
        $ftp attach-agent $sender
        $ns at 0 "$sender select_ca $control"
        $ns at [$starts uniform 0 $from] "$ftp start"
        lappend senders($from) $sender
    }
}

proc sample {} {
    global ns monitor queued samples
    set queued [expr {$queued + [$monitor set pkts_]}]
    incr samples
    $ns at [expr {[$ns now] + 0.01}] sample
}

proc mbit_s {group} {
    global senders duration
    set packets 0
    foreach sender $senders($group) {
        set packets [expr {$packets + [$sender set ack_]}]
    }
    return [expr {$packets * 1500 * 8 / 1e6 / $duration}]
}

proc finish {} {
    global argv monitor queued samples
    set dropped [expr {double([$monitor set pdrops_]) / [$monitor set parrivals_]}]
    set queue [expr {double($queued) / $samples}]
    puts [join $argv ,],[format "%.3f,%.3f,%.3e,%.1f" [mbit_s 0] [mbit_s 1] $dropped $queue]
    exit 0
}

set queued 0
set samples 0
$ns at 0.005 sample
$ns at $duration finish
$ns run
