"""The plain dumbbell in ns-3: python ns3_dumbbell.py FLOWS FROM TO.

FLOWS bulk flows of CUBIC with SACK over 1 Gbit/s, a round trip of 40 ms, a drop-tail queue of one
bandwidth-delay product, packets of 1,500 bytes, an ACK per packet, hosts on separate links of 10
Gbit/s. Prints the data delivered between the simulated seconds FROM and TO, and the processor time
used, as JSON on the last line. Python builds the network; the simulation itself is C++.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from importlib.metadata import version
from typing import Any

from ns import ns  # type: ignore[import-not-found,unused-ignore]

# Payload of a packet of 1,500 bytes with 40 bytes of headers and 12 of timestamps.
SEGMENT_BYTES = 1448
BDP_PACKETS = 3333


def configure() -> None:
    """Set the defaults of sockets and devices."""
    config = ns.Config.SetDefault
    config("ns3::TcpL4Protocol::SocketType", ns.StringValue("ns3::TcpCubic"))
    config("ns3::TcpSocketBase::Sack", ns.BooleanValue(True))
    config("ns3::TcpSocket::SegmentSize", ns.UintegerValue(SEGMENT_BYTES))
    config("ns3::TcpSocket::DelAckCount", ns.UintegerValue(1))
    config("ns3::TcpSocket::InitialCwnd", ns.UintegerValue(10))
    for buffer in ("SndBufSize", "RcvBufSize"):
        config(f"ns3::TcpSocket::{buffer}", ns.UintegerValue(1 << 28))
    # HyStart would leave slow start early; the other simulators do not have it here.
    config("ns3::TcpCubic::HyStart", ns.BooleanValue(False))


def link(rate: str, delay: str, packets: int) -> Any:
    """Return a helper for links with this queue in each direction."""
    helper = ns.PointToPointHelper()
    helper.SetDeviceAttribute("DataRate", ns.StringValue(rate))
    helper.SetChannelAttribute("Delay", ns.StringValue(delay))
    helper.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", ns.StringValue(f"{packets}p"))
    return helper


def build(flows: int) -> list[Any]:
    """Build the network; return the sinks."""
    routers = ns.NodeContainer()
    routers.Create(2)
    ns.InternetStackHelper().Install(routers)
    access = link("10Gbps", "5ms", 1_000_000)
    addresses = ns.Ipv4AddressHelper()
    # No queue discipline beside the device's own queue: the helper adds one where none is
    # uninstalled, before addresses are given.
    none = ns.TrafficControlHelper()

    def join(a: Any, b: Any, helper: Any, network: str) -> Any:
        devices = helper.Install(a, b)
        addresses.SetBase(ns.Ipv4Address(network), ns.Ipv4Mask("255.255.255.252"))
        interfaces = addresses.Assign(devices)
        none.Uninstall(devices)
        return interfaces

    join(routers.Get(0), routers.Get(1), link("1Gbps", "10ms", BDP_PACKETS), "10.0.0.0")
    sinks = []
    routing = ns.Ipv4StaticRoutingHelper()
    for index in range(flows):
        hosts = ns.NodeContainer()
        hosts.Create(2)
        ns.InternetStackHelper().Install(hosts)
        block = f"{index // 64}.{index % 64 * 4}"
        left = join(hosts.Get(0), routers.Get(0), access, f"10.1.{block}")
        right = join(hosts.Get(1), routers.Get(1), access, f"10.2.{block}")
        for node, interfaces in ((hosts.Get(0), left), (hosts.Get(1), right)):
            table = routing.GetStaticRouting(node.GetObject[ns.Ipv4]())
            table.SetDefaultRoute(interfaces.GetAddress(1), 1)
        port = 5000
        remote = ns.InetSocketAddress(right.GetAddress(0), port).ConvertTo()
        source = ns.BulkSendHelper("ns3::TcpSocketFactory", remote)
        source.SetAttribute("SendSize", ns.UintegerValue(SEGMENT_BYTES * 40))
        application = source.Install(hosts.Get(0))
        application.Start(ns.Seconds(0.1 * index / flows))
        local = ns.InetSocketAddress(ns.Ipv4Address.GetAny(), port).ConvertTo()
        sink = ns.PacketSinkHelper("ns3::TcpSocketFactory", local).Install(hosts.Get(1))
        sinks.append(sink.Get(0).GetObject[ns.PacketSink]())
    # Interface 1 of each router is the bottleneck.
    for router, network, gateway in ((0, "10.2.0.0", "10.0.0.2"), (1, "10.1.0.0", "10.0.0.1")):
        table = routing.GetStaticRouting(routers.Get(router).GetObject[ns.Ipv4]())
        mask = ns.Ipv4Mask("255.255.0.0")
        table.AddNetworkRouteTo(ns.Ipv4Address(network), mask, ns.Ipv4Address(gateway), 1)
    return sinks


def run_for(seconds: float) -> None:
    """Simulate this much more."""
    ns.Simulator.Stop(ns.Seconds(seconds))
    ns.Simulator.Run()


def main() -> None:
    """Build, settle, measure, print."""
    flows, begin, end = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    configure()
    sinks = build(flows)
    run_for(begin)
    before, cpu = sum(sink.GetTotalRx() for sink in sinks), time.process_time()
    run_for(end - begin)
    cpu = time.process_time() - cpu
    received = sum(sink.GetTotalRx() for sink in sinks) - before
    result = {
        "version": f"{version('ns3')} CUBIC",
        "packets": received // SEGMENT_BYTES,
        "cpu_s": cpu,
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
