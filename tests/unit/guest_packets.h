/*
 * guest_packets.h - PT packets of a CPU with a guest, into one array: PSB+ of host and guest, and the MTC
 * packets between. Of the tests that include it.
 */
#ifndef TESTS_GUEST_PACKETS_H
#define TESTS_GUEST_PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define VMCS	 0x1234000
#define RATIO	 39 /* TSC ticks per CTC tick */
#define SHIFT	 3
#define HOST0	 (uint64_t)4350000000
#define OFFSET	 ((uint64_t)-4122828888)
#define CTC(tsc) ((uint32_t)((tsc) / RATIO) & 0xffff)

static uint8_t bytes[1 << 16];
static size_t size;

static void put(const void *p, size_t n)
{
	memcpy(bytes + size, p, n);
	size += n;
}

#define PUT(literal) put((literal), sizeof(literal) - 1)

static void put_tsc(uint64_t tsc, uint64_t host)
{
	uint32_t ctc = CTC(host), fast = (uint32_t)(host % RATIO);

	PUT("\x19");
	put(&tsc, 7);
	PUT("\x02\x73");
	put(&ctc, 2);
	PUT("\0");
	put(&fast, 2);
}

/* At a host TSC. */
static void put_psb(uint64_t host, bool guest)
{
	uint64_t vmcs = VMCS >> 12;

	PUT("\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82");
	put_tsc(guest ? host + OFFSET : host, host);
	if (guest)
		PUT("\x02\x43\x01\x34\x12\x00\x00\x00");
	else
		PUT("\x02\x43\x00\x12\x34\x00\x00\x00");
	PUT("\x02\xc8");
	put(&vmcs, 5);
	PUT("\x99\x01");
	if (guest)
		PUT("\x7d\x00\x10\x40\x00\x00\x00");
	else
		PUT("\x7d\x00\x10\x00\x81\xff\xff");
	PUT("\x02\x23");
}

/* MTC packets after the host TSC `from` up to `to`. */
static void put_mtcs(uint64_t from, uint64_t to)
{
	for (uint64_t ctc = (from / RATIO >> SHIFT) + 1; ctc << SHIFT <= to / RATIO; ctc++) {
		uint8_t mtc[2] = {0x59, (uint8_t)ctc};

		put(mtc, 2);
	}
}

#endif
