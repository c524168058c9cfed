# One flow of ns-2's TCP/Linux agent: ns ns2-westwood.tcl CC RATE_MBIT_S RTT_MS QUEUE_PACKETS SECONDS
#
# Prints a row one RTT_MS after the end of each recovery: the time, cwnd before the loss, and ssthresh and cwnd now.
# docs/validation/westwood.md says what it shows.
lassign $argv cc rate rtt queue end
set ns [new Simulator]
set sender [$ns node]
set router [$ns node]
set receiver [$ns node]
$ns duplex-link $sender $router 1Gb [expr {$rtt / 8.0}]ms DropTail
$ns duplex-link $router $receiver ${rate}Mb [expr {$rtt * 3.0 / 8.0}]ms DropTail
$ns queue-limit $router $receiver $queue
$ns queue-limit $sender $router 100000
set tcp [new Agent/TCP/Linux]
$tcp set timestamps_ true
$tcp set window_ 100000
$tcp set packetSize_ 1460
$ns at 0 "$tcp select_ca $cc"
set sink [new Agent/TCPSink/Sack1]
$sink set ts_echo_rfc1323_ true
$ns attach-agent $sender $tcp
$ns attach-agent $receiver $sink
$ns connect $tcp $sink
set ftp [new Application/FTP]
$ftp attach-agent $tcp
$ns at 0 "$ftp start"

set cwnd 0
set resent 0
set recover -1
proc observe {} {
    global ns tcp rtt cwnd resent recover before
    if {$recover >= 0 && [$tcp set ack_] >= $recover} {
        $ns at [expr {[$ns now] + $rtt / 1e3}] "show $before"
        set recover -1
    } elseif {$recover < 0 && [$tcp set nrexmitpack_] > $resent} {
        set before $cwnd
        set recover [$tcp set maxseq_]
    }
    set resent [$tcp set nrexmitpack_]
    set cwnd [$tcp set cwnd_]
    $ns at [expr {[$ns now] + 0.001}] observe
}
proc show {before} {
    global ns tcp
    puts [format "%.3f,%.0f,%.0f,%.0f" [$ns now] $before [$tcp set ssthresh_] [$tcp set cwnd_]]
}
$ns at 0.0005 observe
$ns at $end "exit 0"
$ns run
