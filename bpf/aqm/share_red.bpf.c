/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Share-weighted RED on the packets that leave by a device: a program of the traffic control layer (TCX, egress).
 *
 * It keeps a virtual queue for a rate, and drops or marks packets by the rule in red.h. It stores no packet: a packet passes at
 * once or is dropped. Frames that hold no IP packet pass and are counted.
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed long long s64;

#include <bpf/bpf_helpers.h>

/* The kernel finds the lock by the name of its type. */
struct bpf_spin_lock {
	u32 val;
};

#include "red.h"

#define __uint(name, value) int (*name)[value]
#define __type(name, kind) typeof(kind) *name

/* bpf-helpers(7), by number. */
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_skb_load_bytes_relative)(const void *skb, u32 offset, void *to, u32 len, u32 from) = (void *)68;
static long (*const bpf_spin_lock)(struct bpf_spin_lock *lock) = (void *)93;
static long (*const bpf_spin_unlock)(struct bpf_spin_lock *lock) = (void *)94;
static long (*const bpf_skb_ecn_set_ce)(void *skb) = (void *)97;

enum { MAP_ARRAY = 2 };
enum { NETWORK_HEADER = 1 };
enum { TCX_NEXT = -1, TCX_DROP = 2 };
enum { TCP = 6, UDP = 17 };

char _license[] SEC("license") = "Dual BSD/GPL";

/* linux/bpf.h. */
struct __sk_buff {
	u32 len;
	u32 pkt_type;
	u32 mark;
	u32 queue_mapping;
	u32 protocol;
	u32 vlan[3];
	u32 priority;
	u32 ingress_ifindex;
	u32 ifindex;
	u32 tc_index;
	u32 cb[5];
	u32 hash;
	u32 tc_classid;
	u32 data;
	u32 data_end;
	u32 napi_id;
	u32 socket[13];
	u32 data_meta;
	u64 flow_keys;
	u64 tstamp;
	u32 wire_len;
	u32 gso_segs;
};

struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct aqm_config);
} aqm_config SEC(".maps");

struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct aqm_state);
} aqm_state SEC(".maps");

struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct aqm_counters);
} aqm_counters SEC(".maps");

/* What was attached, as JSON: only for `anabranch aqm status`. */
struct aqm_about {
	char text[4096];
};

struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct aqm_about);
} aqm_about SEC(".maps");

struct ports {
	u16 source;
	u16 destination;
};

static __always_inline u16 big_endian(u16 x)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return __builtin_bswap16(x);
#else
	return x;
#endif
}

static __always_inline u64 mix(u64 x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ULL;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ULL;
	return x ^ (x >> 32);
}

/* An IP packet's size, connection and ECN field; 0 if the frame is none. */
static __always_inline int read_packet(struct __sk_buff *skb, u64 hash, struct aqm_arrival *arrival)
{
	u32 words[11], protocol, header, usual, ports;
	u64 length;
	int is_part = 0, ecn;

	/* With the ports where they usually are; a packet may be too short for them. */
	if (skb->protocol == big_endian(0x0800)) {
		words[5] = 0;
		if (bpf_skb_load_bytes_relative(skb, 0, words, 24, NETWORK_HEADER) &&
		    bpf_skb_load_bytes_relative(skb, 0, words, 20, NETWORK_HEADER))
			return 0;
		ports = words[5];
		u8 *octets = (u8 *)words;

		header = (octets[0] & 15) * 4;
		usual = 20;
		ecn = octets[1] & 3;
		length = big_endian(*(u16 *)(octets + 2));
		/* Offset and "more fragments": later fragments have no ports. */
		is_part = (big_endian(*(u16 *)(octets + 6)) & 0x3fff) != 0;
		protocol = octets[9];
		hash = mix(hash ^ ((u64)words[3] << 32 | words[4]));
	} else if (skb->protocol == big_endian(0x86dd)) {
		words[10] = 0;
		if (bpf_skb_load_bytes_relative(skb, 0, words, 44, NETWORK_HEADER) &&
		    bpf_skb_load_bytes_relative(skb, 0, words, 40, NETWORK_HEADER))
			return 0;
		ports = words[10];
		u8 *octets = (u8 *)words;

		header = usual = 40;
		ecn = (octets[1] >> 4) & 3;
		length = big_endian(*(u16 *)(octets + 4));
		length = length ? length + 40 : 0;
		protocol = octets[6];
		hash = mix(hash ^ ((u64)words[2] << 32 | words[3]));
		hash = mix(hash ^ ((u64)words[4] << 32 | words[5]));
		hash = mix(hash ^ ((u64)words[6] << 32 | words[7]));
		hash = mix(hash ^ ((u64)words[8] << 32 | words[9]));
	} else {
		return 0;
	}
	if (is_part || (protocol != TCP && protocol != UDP))
		ports = 0;
	else if (header != usual)
		bpf_skb_load_bytes_relative(skb, header, &ports, 4, NETWORK_HEADER);
	hash = mix(hash ^ ((u64)ports << 8 | protocol));

	arrival->slot = hash & (AQM_SLOTS - 1);
	arrival->is_capable = ecn != 0;
	arrival->packets = 1;
	/* The length of an aggregate beyond 64 KiB is not in its header. */
	arrival->bytes = length ? length : skb->len;
	if (skb->gso_segs > 1) {
		u64 link = skb->len > arrival->bytes ? skb->len - arrival->bytes : 0;

		arrival->packets = skb->gso_segs;
		/* With the headers of each segment. */
		if (skb->wire_len > skb->gso_segs * link)
			arrival->bytes = skb->wire_len - skb->gso_segs * link;
	}
	return 1;
}

SEC("tcx/egress")
int ab_share_red(struct __sk_buff *skb)
{
	struct aqm_arrival arrival;
	struct aqm_counters *counters;
	struct aqm_config *config;
	struct aqm_state *state;
	int verdict;
	u32 key = 0;

	config = bpf_map_lookup_elem(&aqm_config, &key);
	state = bpf_map_lookup_elem(&aqm_state, &key);
	counters = bpf_map_lookup_elem(&aqm_counters, &key);
	if (!config || !state || !counters || !config->byte_time)
		return TCX_NEXT;
	arrival.now = config->clock ? skb->tstamp : bpf_ktime_get_ns();
	if (config->deadline && arrival.now > config->deadline)
		return TCX_NEXT;
	if (!read_packet(skb, config->hash_key, &arrival)) {
		__sync_fetch_and_add(&counters->other_frames, 1);
		return TCX_NEXT;
	}
	bpf_spin_lock(&state->lock);
	verdict = aqm_decide(config, state, counters, &arrival);
	bpf_spin_unlock(&state->lock);
	if (verdict == AQM_DROP)
		return TCX_DROP;
	if (verdict == AQM_MARK)
		bpf_skb_ecn_set_ce(skb);
	return TCX_NEXT;
}
