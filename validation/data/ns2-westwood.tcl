# One flow of ns-2's TCP/Linux agent at 100 Mbit/s: ns validation/data/ns2-westwood.tcl RTT_MS QUEUE_PACKETS CC SECONDS
# Prints cwnd and ssthresh every 200 ms. docs/validation/westwood.md says what it shows.
set ns [new Simulator]
set rtt [lindex $argv 0]
set queue [lindex $argv 1]
set cc [lindex $argv 2]
set end [lindex $argv 3]
set sender [$ns node]
set router [$ns node]
set receiver [$ns node]
$ns duplex-link $sender $router 1Gb [expr $rtt / 8.0]ms DropTail
$ns duplex-link $router $receiver 100Mb [expr $rtt * 3.0 / 8.0]ms DropTail
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
proc record {} {
    global ns tcp
    puts [format "%.2f cwnd %.0f ssthresh %.0f" [$ns now] [$tcp set cwnd_] [$tcp set ssthresh_]]
    $ns at [expr [$ns now] + 0.2] "record"
}
$ns at 0.01 "record"
$ns at $end "exit 0"
$ns run
