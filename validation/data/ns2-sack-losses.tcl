# One flow by ns-2's TCP with SACK over the path of ns2-sack-delay.csv, 200 ms in the middle, at a loss rate of one's own:
#
#     ns ns2-sack-losses.tcl LOSS HOST_QUEUE SEED
#
# All links 100 Mbit/s, 1 ms, 200 ms and 1 ms; queues of 50 packets, but HOST_QUEUE packets at the sending host. Data is lost
# at random on the middle link, LOSS of it. After 220 s it prints as a row: LOSS, HOST_QUEUE, SEED, the Mbit/s acknowledged
# (packets counted as 1,500 bytes), packets sent and sent again, timeouts, and fast recoveries, which are the reductions
# of the window that no timeout made.

lassign $argv loss host_queue seed
set duration 220
ns-random $seed

# With the 40 bytes of headers that the agent adds: 1,500 on the wire.
Agent/TCP set packetSize_ 1460
Agent/TCP set window_ 65535

set ns [new Simulator]
foreach node {S A B D} {
    set $node [$ns node]
}
foreach {from to delay} [list $S $A 1 $A $B 200 $B $D 1] {
    $ns duplex-link $from $to 100Mb ${delay}ms DropTail
    $ns queue-limit $from $to 50
    $ns queue-limit $to $from 50
}
$ns queue-limit $S $A $host_queue

set losses [new ErrorModel]
$losses unit pkt
$losses set rate_ $loss
$losses ranvar [new RandomVariable/Uniform]
$losses drop-target [new Agent/Null]
$ns lossmodel $losses $A $B

set sender [new Agent/TCP/Sack1]
set sink [new Agent/TCPSink/Sack1]
$ns attach-agent $S $sender
$ns attach-agent $D $sink
$ns connect $sender $sink
set ftp [new Application/FTP]
$ftp attach-agent $sender

proc finish {} {
    global argv sender duration
    set mbit_s [expr {[$sender set ack_] * 1500 * 8 / 1e6 / $duration}]
    set timeouts [$sender set nrexmit_]
    set recoveries [expr {[$sender set ncwndcuts_] - $timeouts}]
    puts [join $argv ,],[format "%.4f" $mbit_s],[$sender set ndatapack_],[$sender set nrexmitpack_],$timeouts,$recoveries
    exit 0
}

$ns at 0 "$ftp start"
$ns at $duration finish
$ns run
