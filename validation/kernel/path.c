/* The path of validation/data/linux-reordering.toml in real time, between two TUN devices.
 *
 *     path ACCESS_BIT_S ACCESS_US BOTTLENECK_BIT_S BOTTLENECK_US QUEUE INTERVAL SENDER_FD RECEIVER_FD
 *
 * Three links each way: access, bottleneck, access. The bottleneck's queue is drop-tail, holds QUEUE packets with the one in
 * transmission, and on the way to the receiver reorders by INTERVAL (0: not at all): when more than INTERVAL packets wait and no
 * moved packet does, the head goes back by INTERVAL places.
 *
 * All of the path is computed in virtual time from the moment at which a packet was read, so a late wake-up does not change the
 * rate. What it does change is when a packet is handed over: that is recorded as lateness.
 *
 * Prints "ready" once it forwards, and one line of figures after SIGTERM or when standard input ends.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum {
    RING = 1 << 14,          /* packets in one place at most */
    PACKET = 2048,           /* bytes of the largest packet */
    SPIN_NS = 60000,         /* sleep until so long before a packet is due, then look at the clock */
    BATCH = 64,              /* packets read at once */
    BINS = 100001,           /* of lateness, one microsecond each; the last is for all above */
    LONGEST_SLEEP_NS = 2000000
};

struct packet {
    int64_t at; /* when it is where it is going */
    int bytes;
    unsigned char data[PACKET];
};

struct ring {
    struct packet *slot[RING];
    unsigned head, tail;
};

struct link {
    double ns_per_bit;
    int64_t delay, free;
};

struct way {
    struct link first, bottleneck, last;
    struct ring arriving, waiting, leaving;
    struct packet *moved;
    unsigned before;   /* packets that still leave before the moved one */
    unsigned interval; /* 0: keeps the order */
    long dropped, moves;
};

static struct way ways[2];
static unsigned queue_limit;
static struct ring spare;
static long lateness[BINS], handed_over;
static double latest;
static volatile sig_atomic_t over;

static void stop(int signal_number)
{
    (void)signal_number;
    over = 1;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static unsigned length(const struct ring *ring)
{
    return ring->tail - ring->head;
}

static void push(struct ring *ring, struct packet *packet)
{
    if (length(ring) == RING) {
        fputs("path: more packets on their way than there is room for\n", stderr);
        exit(1);
    }
    ring->slot[ring->tail++ % RING] = packet;
}

static struct packet *first(const struct ring *ring)
{
    return length(ring) ? ring->slot[ring->head % RING] : NULL;
}

static struct packet *pop(struct ring *ring)
{
    return ring->slot[ring->head++ % RING];
}

static struct packet *fresh(void)
{
    if (length(&spare))
        return pop(&spare);
    struct packet *packet = malloc(sizeof *packet);
    if (!packet)
        fail("path: malloc");
    return packet;
}

/* A link that always has room: when a packet that comes at `at` reaches its far end. */
static int64_t across(struct link *link, int64_t at, int bytes)
{
    int64_t start = at > link->free ? at : link->free;
    link->free = start + (int64_t)(bytes * 8 * link->ns_per_bit);
    return link->free + link->delay;
}

static unsigned backlog(const struct way *way)
{
    return length(&way->waiting) + (way->moved != NULL);
}

static struct packet *next(struct way *way)
{
    if (way->interval && !way->moved && length(&way->waiting) > way->interval) {
        way->moved = pop(&way->waiting);
        way->before = way->interval;
        way->moves++;
    }
    if (way->moved && (way->before == 0 || !length(&way->waiting))) {
        struct packet *packet = way->moved;
        way->moved = NULL;
        return packet;
    }
    if (way->moved)
        way->before--;
    return pop(&way->waiting);
}

/* The bottleneck takes its next packet at `at`. */
static void serve(struct way *way, int64_t at)
{
    struct packet *packet = next(way);
    struct link *link = &way->bottleneck;
    link->free = at + (int64_t)(packet->bytes * 8 * link->ns_per_bit);
    packet->at = across(&way->last, link->free + link->delay, packet->bytes);
    push(&way->leaving, packet);
}

/* Everything at the bottleneck up to `until`, in order of virtual time; transmissions end before packets arrive. */
static void advance(struct way *way, int64_t until)
{
    for (;;) {
        struct packet *coming = first(&way->arriving);
        int64_t free = way->bottleneck.free;
        if (backlog(way) && free <= until && (!coming || free <= coming->at)) {
            serve(way, free);
        } else if (coming && coming->at <= until) {
            pop(&way->arriving);
            unsigned held = backlog(way) + (free > coming->at);
            if (held >= queue_limit) {
                way->dropped++;
                push(&spare, coming);
                continue;
            }
            push(&way->waiting, coming);
            if (free <= coming->at)
                serve(way, coming->at);
        } else {
            return;
        }
    }
}

static void take_in(struct way *way, int from)
{
    for (int count = 0; count < BATCH; count++) {
        struct packet *packet = fresh();
        ssize_t bytes = read(from, packet->data, PACKET);
        if (bytes <= 0) {
            push(&spare, packet);
            if (bytes < 0 && errno != EAGAIN && errno != EINTR)
                fail("path: read");
            return;
        }
        packet->bytes = (int)bytes;
        packet->at = across(&way->first, now(), packet->bytes);
        push(&way->arriving, packet);
    }
}

static void hand_over(struct way *way, int to)
{
    struct packet *packet;
    while ((packet = first(&way->leaving)) && packet->at <= now()) {
        pop(&way->leaving);
        double late = (double)(now() - packet->at) / 1e3;
        /* A host whose device is full or down loses the packet, as on any wire. */
        if (write(to, packet->data, (size_t)packet->bytes) < 0 && errno != EAGAIN && errno != EIO)
            fail("path: write");
        lateness[late < BINS - 1 ? (int)late : BINS - 1]++;
        latest = late > latest ? late : latest;
        handed_over++;
        push(&spare, packet);
    }
}

/* When the next packet is due for sure; what is not at the bottleneck yet needs longer than the longest sleep. */
static int64_t due(int64_t at)
{
    int64_t earliest = at + LONGEST_SLEEP_NS;
    for (int index = 0; index < 2; index++) {
        struct packet *packet = first(&ways[index].leaving);
        if (packet && packet->at < earliest)
            earliest = packet->at;
    }
    return earliest;
}

static int percentile(double share)
{
    long seen = 0;
    for (int bin = 0; bin < BINS; bin++) {
        seen += lateness[bin];
        if ((double)seen >= share * (double)handed_over)
            return bin + 1;
    }
    return BINS;
}

int main(int count, char **words)
{
    if (count != 9) {
        fputs("usage: path ACCESS_BIT_S ACCESS_US BOTTLENECK_BIT_S BOTTLENECK_US QUEUE INTERVAL SENDER_FD RECEIVER_FD\n", stderr);
        return 2;
    }
    struct link access = {1e9 / atof(words[1]), atoll(words[2]) * 1000, 0};
    struct link bottleneck = {1e9 / atof(words[3]), atoll(words[4]) * 1000, 0};
    queue_limit = (unsigned)atoi(words[5]);
    int hosts[2] = {atoi(words[7]), atoi(words[8])};
    for (int index = 0; index < 2; index++) {
        ways[index].first = ways[index].last = access;
        ways[index].bottleneck = bottleneck;
    }
    ways[0].interval = (unsigned)atoi(words[6]);

    struct sigaction action = {.sa_handler = stop};
    sigaction(SIGTERM, &action, NULL);
    signal(SIGINT, SIG_IGN); /* standard input ends when the one who started this is interrupted */
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    puts("ready");
    fflush(stdout);

    while (!over) {
        struct pollfd files[3] = {{hosts[0], POLLIN, 0}, {hosts[1], POLLIN, 0}, {0, POLLIN, 0}};
        int64_t left = due(now()) - now() - SPIN_NS;
        struct timespec sleep = {0, left > 0 ? (long)left : 0};
        if (ppoll(files, 3, &sleep, NULL) < 0 && errno != EINTR)
            fail("path: ppoll");
        if (files[2].revents)
            break;
        for (int index = 0; index < 2; index++) {
            if (files[index].revents)
                take_in(&ways[index], hosts[index]);
            advance(&ways[index], now());
            hand_over(&ways[index], hosts[!index]);
        }
    }
    printf("{\"dropped\": %ld, \"moved\": %ld, \"dropped_back\": %ld, \"lateness_p50_us\": %d, \"lateness_p99_us\": %d, "
           "\"lateness_max_us\": %.0f}\n",
           ways[0].dropped, ways[0].moves, ways[1].dropped, percentile(0.5), percentile(0.99), latest);
    return 0;
}
