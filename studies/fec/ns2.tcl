# One flow by ns-2's TCP with SACK over the study's path without error correction:
#
#     ns ns2.tcl LOSS HOST_QUEUE TICK_S MIN_RTO_S FIRST_RTO_S TIMESTAMPS SEED
#
# 100 Mbit/s, 1 ms, 200 ms and 1 ms; queues of 50 packets, but HOST_QUEUE packets at the sending host. Data is lost at random
# on the middle link, LOSS of it. TICK_S is the timer's tick (ns-2's default: 0.1), MIN_RTO_S its minimum (0.2), FIRST_RTO_S the
# first timeout (3), TIMESTAMPS 0 or 1 (0).
#
# After 220 s it prints as a row: the Mbit/s acknowledged (packets counted as 1,500 octets), packets sent and
# retransmitted, timeouts, and the timeouts in the recovery from the first loss, which ends slow start. For each
# of those it also prints the time, the timeout's length, and how long a packet waits in the host's queue at that time.

lassign $argv loss host_queue tick min_rto first_rto timestamps seed
set duration 220
ns-random $seed

remove-all-packet-headers
add-packet-header Flags IP TCP
Agent/TCP set packetSize_ [expr {$timestamps ? 1450 : 1460}]
Agent/TCP set window_ 65535
Agent/TCP set tcpTick_ $tick
Agent/TCP set minrto_ $min_rto
Agent/TCP set rtxcur_init_ $first_rto
Agent/TCP set timestamps_ [expr {$timestamps ? true : false}]

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
set waiting [$ns monitor-queue $S $A ""]

set losses [new ErrorModel]
$losses unit pkt
$losses set rate_ $loss
$losses ranvar [new RandomVariable/Uniform]
$losses drop-target [new Agent/Null]
$ns lossmodel $losses $A $B

set sender [new Agent/TCP/Sack1]
set sink [new Agent/TCPSink/Sack1]
if {$timestamps} {
    $sink set ts_echo_rfc1323_ true
}
$ns attach-agent $S $sender
$ns attach-agent $D $sink
$ns connect $sender $sink
set ftp [new Application/FTP]
$ftp attach-agent $sender

set timeouts 0
set early 0
set recover -1
set rto 0
set described {}
proc observe {} {
    global ns sender waiting timeouts early recover rto described tick
    set now [$sender set nrexmit_]
    if {$recover < 0 && ([$sender set nrexmitpack_] > 0 || $now > 0)} {
        set recover [$sender set maxseq_]
    }
    if {$now > $timeouts && [$sender set ack_] < $recover} {
        set early [expr {$early + $now - $timeouts}]
        set queued [expr {[$waiting set pkts_] * 1500 * 8 / 1e8}]
        lappend described [format "%.2f/%.2f/%.2f" [$ns now] $rto $queued]
    }
    set timeouts $now
    set srtt [expr {[$sender set srtt_] / 8.0 * $tick}]
    set rto [expr {($srtt + [$sender set rttvar_] * $tick)}]
    $ns at [expr {[$ns now] + 0.01}] observe
}

proc finish {} {
    global sender duration early described
    set mbit_s [expr {[$sender set ack_] * 1500 * 8 / 1e6 / $duration}]
    puts [format "%.2f,%d,%d,%d,%d,%s" $mbit_s [$sender set ndatapack_] [$sender set nrexmitpack_] [$sender set nrexmit_] $early [join $described]]
    exit 0
}

$ns at 0 "$ftp start"
$ns at 0.005 observe
$ns at $duration finish
$ns run
