# The plain dumbbell in ns-2: ns ns2_dumbbell.tcl FLOWS FROM TO
#
# FLOWS bulk flows over 1 Gbit/s, a round trip of 40 ms, a drop-tail queue of one bandwidth-delay
# product, packets of 1,500 bytes, an ACK per packet, hosts on separate links of 10 Gbit/s.
# Prints the data delivered between the simulated seconds FROM and TO, and the processor time used,
# as JSON on the last line.
#
# Agent/TCP/Sack1 has Reno's window law, which costs less than CUBIC's.

lassign $argv flows from to

proc cpu_s {} {
    # Nanoseconds on the processor are the first number.
    set file [open /proc/self/schedstat]
    set first [lindex [gets $file] 0]
    close $file
    return [expr {$first / 1e9}]
}

proc peak_rss_bytes {} {
    set file [open /proc/self/status]
    set text [read $file]
    close $file
    regexp {VmHWM:\s+(\d+) kB} $text whole kib
    return [expr {$kib * 1024}]
}

proc acknowledged {} {
    global senders
    set sum 0
    foreach sender $senders {
        incr sum [expr {int([$sender set ack_])}]
    }
    return $sum
}

proc begin {} {
    global packets_before cpu_before
    set packets_before [acknowledged]
    set cpu_before [cpu_s]
}

proc finish {} {
    global packets_before cpu_before
    set cpu [expr {[cpu_s] - $cpu_before}]
    set packets [expr {[acknowledged] - $packets_before}]
    puts "{\"version\": \"[ns-version] Sack1\", \"packets\": $packets, \"cpu_s\": $cpu, \"peak_rss_bytes\": [peak_rss_bytes]}"
    exit 0
}

proc lead_to {node neighbour} {
    [$node get-module "Manual"] add-route-to-adj-node -default $neighbour
}

set ns [new Simulator]
# Without this the shortest paths between all pairs of nodes are computed first.
$ns rtproto Manual
# Only the headers in use: each packet carries one of every kind otherwise.
remove-all-packet-headers
add-packet-header IP TCP Flags

Agent/TCP set packetSize_ 1460
Agent/TCP set window_ 1000000
Agent/TCP set windowInit_ 10
Agent/TCP set minrto_ 1.0
Agent/TCP set tcpTick_ 0.001

set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right 1Gb 10ms DropTail
$ns queue-limit $left $right 3333
$ns queue-limit $right $left 3333
lead_to $left $right
lead_to $right $left

set senders {}
for {set i 0} {$i < $flows} {incr i} {
    set source [$ns node]
    set sink_node [$ns node]
    foreach {host router} [list $source $left $sink_node $right] {
        $ns duplex-link $host $router 10Gb 5ms DropTail
        $ns queue-limit $host $router 1000000
        $ns queue-limit $router $host 1000000
        lead_to $host $router
        [$router get-module "Manual"] add-route-to-adj-node $host
    }
    # The routers' default routes lead across; what comes back is for the hosts just added.
    set sender [new Agent/TCP/Sack1]
    set sink [new Agent/TCPSink/Sack1]
    $ns attach-agent $source $sender
    $ns attach-agent $sink_node $sink
    $ns connect $sender $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $sender
    $ns at [expr {0.1 * $i / $flows}] "$ftp start"
    lappend senders $sender
}
$ns at $from begin
$ns at $to finish
$ns run
