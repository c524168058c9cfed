// The plain dumbbell in htsim: htsim_dumbbell FLOWS FROM TO
//
// FLOWS bulk flows over 1 Gbit/s, a round trip of 40 ms, a drop-tail queue of one bandwidth-delay
// product, packets of 1,500 bytes, an ACK per packet, hosts on separate links of 10 Gbit/s.
// Prints the data delivered between the simulated seconds FROM and TO, and the processor time used,
// as JSON on the last line.
//
// Its TCP is NewReno without SACK, so slow start must not overrun the queue by a window: a flow leaves
// slow start at its share of the path and nine tenths of the queue, and loses packets from then on.

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <sstream>
#include <vector>

#include "eventlist.h"
#include "pipe.h"
#include "queue.h"
#include "tcp.h"

namespace {

const int kPacket = 1500;
const int kBdpPackets = 3333;

double cpu_s() {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

long long peak_rss_bytes() {
    std::ifstream status("/proc/self/status");
    std::string line;
    while (std::getline(status, line)) {
        if (line.compare(0, 6, "VmHWM:") == 0) {
            return std::atoll(line.c_str() + 6) * 1024;
        }
    }
    return 0;
}

// Reads packets and processor time at one simulated moment.
class Moment : public EventSource {
public:
    Moment(EventList& events, const std::vector<TcpSink*>& sinks, double at_s)
        : EventSource(events, "moment"), sinks_(sinks) {
        events.sourceIsPending(*this, timeFromSec(at_s));
    }
    void doNextEvent() override {
        for (const TcpSink* sink : sinks_) {
            packets += sink->_cumulative_ack / kPacket;
        }
        cpu = cpu_s();
        passed = true;
    }
    bool passed = false;
    unsigned long long packets = 0;
    double cpu = 0;

private:
    const std::vector<TcpSink*>& sinks_;
};

struct Link {
    Link(EventList& events, double gbit_per_s, double delay_ms, mem_b packets)
        : queue(new Queue(speedFromGbps(gbit_per_s), packets * kPacket, events, nullptr)),
          pipe(new Pipe(timeFromMs(delay_ms), events)) {}
    void append_to(Route& route) const {
        route.push_back(queue);
        route.push_back(pipe);
    }
    Queue* queue;
    Pipe* pipe;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::cerr << "usage: htsim_dumbbell FLOWS FROM TO\n";
        return 2;
    }
    const int flows = std::atoi(argv[1]);
    EventList& events = EventList::getTheEventList();
    Packet::set_packet_size(kPacket);
    TcpRtxTimerScanner timers(timeFromMs(10.0), events);
    const Link forward(events, 1, 10, kBdpPackets), reverse(events, 1, 10, kBdpPackets);
    std::vector<TcpSink*> sinks;
    for (int i = 0; i < flows; ++i) {
        const auto access = [&events] { return Link(events, 10, 5, 1000000); };
        TcpSrc* source = new TcpSrc(nullptr, nullptr, events);
        TcpSink* sink = new TcpSink();
        Route* out = new Route();
        Route* back = new Route();
        access().append_to(*out);
        forward.append_to(*out);
        access().append_to(*out);
        out->push_back(sink);
        access().append_to(*back);
        reverse.append_to(*back);
        access().append_to(*back);
        back->push_back(source);
        source->set_ssthresh(kBdpPackets * 19LL / 10 * kPacket / flows);
        source->connect(*out, *back, *sink, timeFromSec(0.1 * i / flows));
        timers.registerTcp(*source);
        sinks.push_back(sink);
    }
    const Moment from(events, sinks, std::atof(argv[2])), to(events, sinks, std::atof(argv[3]));
    while (!to.passed && events.doNextEvent()) {
    }
    std::cout << "\n{\"version\": \"" HTSIM_VERSION " NewReno\", \"packets\": " << to.packets - from.packets
              << ", \"cpu_s\": " << to.cpu - from.cpu << ", \"peak_rss_bytes\": " << peak_rss_bytes() << "}\n";
    return 0;
}
