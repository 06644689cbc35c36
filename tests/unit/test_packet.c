/* Every packet of the SDM's "Packet definitions", byte by byte; and that nothing is read beyond the end. */
#include <stdio.h>
#include <string.h>

#include "decode/packet/packet.h"
#include "tests/unit/check.h"

static const struct {
	const char *bytes;
	int size;
	const char *text; /* name and payload; NULL: a bad packet */
	unsigned bip;
} cases[] = {
    {"\x00", 1, "pad", 0},
    {"\x04", 1, "tnt.8 N", 0},
    {"\x06", 1, "tnt.8 T", 0},
    {"\xfe", 1, "tnt.8 TTTTTT", 0},
    {"\x80", 1, "tnt.8 NNNNNN", 0},
    {"\x1a", 1, "tnt.8 TNT", 0},
    {"\x02\xa3\x05\x00\x00\x00\x00\x00", 8, "tnt.64 NT", 0},
    {"\x02\xa3\xff\xff\xff\xff\xff\xff", 8, "tnt.64 TTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTT", 0},
    {"\x02\xa3\x00\x00\x00\x00\x00\x00", 8, NULL, 0},
    {"\x02\xa3\x01\x00\x00\x00\x00\x00", 8, NULL, 0},
    {"\x0d", 1, "tip 0:0", 0},
    {"\x2d\x34\x12", 3, "tip 1:1234", 0},
    {"\x4d\x78\x56\x34\x12", 5, "tip 2:12345678", 0},
    {"\x6d\x01\x02\x03\x04\x05\x86", 7, "tip 3:860504030201", 0},
    {"\x8d\x01\x02\x03\x04\x05\x06", 7, "tip 4:60504030201", 0},
    {"\xcd\x01\x02\x03\x04\x05\x06\x07\x08", 9, "tip 6:807060504030201", 0},
    {"\xad\x01\x02\x03\x04\x05\x06\x07\x08", 9, NULL, 0},
    {"\xed\x01\x02\x03\x04\x05\x06\x07\x08", 9, NULL, 0},
    {"\x31\x34\x12", 3, "tip.pge 1:1234", 0},
    {"\x01", 1, "tip.pgd 0:0", 0},
    {"\x7d\x01\x02\x03\x04\x05\x06", 7, "fup 3:60504030201", 0},
    {"\x99\x01", 2, "mode exec csl=1 csd=0", 0},
    {"\x99\x06", 2, "mode exec csl=0 csd=1 if=1", 0},
    {"\x99\x23", 2, "mode tsx intx=1 abrt=1", 0},
    {"\x99\x00", 2, "mode exec csl=0 csd=0", 0},
    {"\x99\x02", 2, "mode exec csl=0 csd=1", 0},
    {"\x99\x03", 2, NULL, 0}, /* CS.L and CS.D: no such mode */
    {"\x99\x19", 2, "mode exec csl=1 csd=0", 0},
    {"\x99\x20", 2, "mode tsx intx=0 abrt=0", 0},
    {"\x99\x21", 2, "mode tsx intx=1 abrt=0", 0},
    {"\x99\x22", 2, "mode tsx intx=0 abrt=1", 0},
    {"\x99\x40", 2, NULL, 0},
    {"\x99\x60", 2, NULL, 0},
    {"\x99\x80", 2, NULL, 0},
    {"\x99\xe0", 2, NULL, 0},
    {"\x19\x01\x02\x03\x04\x05\x06\x07", 8, "tsc 7060504030201", 0},
    {"\x59\x7f", 2, "mtc 7f", 0},
    {"\x02\x73\x34\x12\x00\xff\x01", 7, "tma ctc=1234 fc=1ff", 0},
    {"\x02\x73\x00\x00\x01\x00\x00", 7, NULL, 0},
    {"\x02\x73\x00\x00\x00\x00\x02", 7, NULL, 0},
    {"\x02\x73\xff\xff\x00\x00\x00", 7, "tma ctc=ffff fc=0", 0},
    {"\x02\x03\x1e\x00", 4, "cbr 30", 0},
    {"\x02\x03\xff\xff", 4, "cbr 255", 0},
    {"\x0b", 1, "cyc 1", 0},
    {"\xfb", 1, "cyc 1f", 0},
    {"\x0f\x02", 2, "cyc 21", 0},
    {"\xff\xff\xfe", 3, "cyc 7ffff", 0},
    {"\x03", 1, "cyc 0", 0},
    {"\x07\x00", 2, "cyc 0", 0},
    {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x1e", 10, "cyc ffffffffffffffff", 0},
    {"\x07\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x00", 15, "cyc 0", 0},
    {"\x07\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01", 15, NULL, 0},
    {"\x02\x43\xfe\xff\xff\xff\xff\xff", 8, "pip cr3=fffffffffffe0 nr=0", 0},
    {"\x02\x43\x03\x00\x00\x00\x00\x00", 8, "pip cr3=20 nr=1", 0},
    {"\x02\xc8\x57\xfc\x05\x00\x00", 7, "vmcs 5fc57000", 0},
    {"\x02\x23", 2, "psbend", 0},
    {"\x02\xf3", 2, "ovf", 0},
    {"\x02\x83", 2, "stop", 0},
    {"\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82", 16, "psb", 0},
    {"\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x83", 16, NULL, 0},
    {"\x02\xc3\x88\x01\x02\x03\x04\x05\x06\x07\x08", 11, "mnt 807060504030201", 0},
    {"\x02\x12\x78\x56\x34\x12", 6, "ptw plc=0 ip=0 12345678", 0},
    {"\x02\xb2\x01\x02\x03\x04\x05\x06\x07\x08", 10, "ptw plc=1 ip=1 807060504030201", 0},
    {"\x02\x12\x01\x02\x03\x84", 6, "ptw plc=0 ip=0 84030201", 0},
    {"\x02\x92\x01\x02\x03\x84", 6, "ptw plc=0 ip=1 84030201", 0},
    {"\x02\x32\x01\x02\x03\x04\x05\x06\x07\x88", 10, "ptw plc=1 ip=0 8807060504030201", 0},
    {"\x02\x72\x01\x02\x03\x04", 6, NULL, 0},
    {"\x02\xd2\x01\x02\x03\x04", 6, NULL, 0},
    {"\x02\xf2\x01\x02\x03\x04", 6, NULL, 0},
    {"\x02\x52\x01\x02\x03\x04", 6, NULL, 0},
    {"\x02\x62", 2, "exstop ip=0", 0},
    {"\x02\xe2", 2, "exstop ip=1", 0},
    {"\x02\xc2\x20\x00\x00\x00\x01\x00\x00\x00", 10, "mwait hints=20 ext=1", 0},
    {"\x02\xc2\x20\xff\xff\xff\xfd\xff\xff\xff", 10, "mwait hints=20 ext=1", 0}, /* reserved bits */
    {"\x02\x22\x00\x60", 4, "pwre c6.0 hw=0", 0},
    {"\x02\xa2\x60\x08\x00\x00\x00", 7, "pwrx last=6 deepest=0 int=0 st=0 aut=1", 0},
    {"\x02\x22\x80\x21", 4, "pwre c2.1 hw=1", 0},
    {"\x02\xa2\x21\x05\x00\x00\x00", 7, "pwrx last=2 deepest=1 int=1 st=1 aut=0", 0},
    {"\x02\x63\x81", 3, "bbp type=1 bytes=4", 0},
    {"\x02\x63\x04", 3, "bbp type=4 bytes=8", 0},
    {"\xfc\x01\x02\x03\x04", 5, "bip id=1f 4030201", 4},
    {"\x06", 1, "tnt.8 T", 8}, /* only 100b in the lowest bits is a BIP */
    {"\x0c\x01\x02\x03\x04", 5, "bip id=1 4030201", 4},
    {"\x0c\x01\x02\x03\x04\x05\x06\x07\x08", 9, "bip id=1 807060504030201", 8},
    {"\x0c", 1, "tnt.8 TN", 0},
    {"\x02\x33", 2, "bep ip=0", 0},
    {"\x02\xb3", 2, "bep ip=1", 0},
    {"\x02\x13\x87\x20", 4, "cfe type=7 vector=32 ip=1", 0},
    {"\x02\x53\x02\x0a\x00\x00\x00\x00\x00\x00\x00", 11, "evd type=2 a", 0},
    {"\x02\x13\x01\xff", 4, "cfe type=1 vector=255 ip=0", 0},
    {"\x02\x13\x6d\x00", 4, "cfe type=13 vector=0 ip=0", 0}, /* reserved bits */
    {"\x02\x53\xff\x01\x02\x03\x04\x05\x06\x07\x08", 11, "evd type=63 807060504030201", 0},
    {"\xd9\x00\x05", 3, "trig trbv=5 ip=0 mult=0", 0},
    {"\xd9\x80\x01", 3, "trig trbv=1 ip=1 mult=0", 0},
    {"\xd9\xe0\x03\x34\x12", 5, "trig trbv=3 ip=1 mult=1 icnt=4660", 0},
    {"\x02\xc8\xff\xff\xff\xff\xff", 7, "vmcs ffffffffff000", 0},
    {"\x02\xc3\x89", 3, NULL, 0},
    {"\x02\x00", 2, NULL, 0},
    {"\x02\x02", 2, NULL, 0},
    {"\x02\x04", 2, NULL, 0},
    {"\x02\xff", 2, NULL, 0},
    {"\xc9", 1, NULL, 0},
    {"\x05", 1, NULL, 0},
    {"\x15", 1, NULL, 0},
    {"\x39", 1, NULL, 0},
    {"\x79", 1, NULL, 0},
    {"\xb9", 1, NULL, 0},
    {"\xf9", 1, NULL, 0},
    {"\x09", 1, NULL, 0},
};

static void every_packet(void)
{
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const uint8_t *p = (const uint8_t *)cases[i].bytes;
		struct pt_packet k;
		char line[100], text[80], what[120];
		int n = pt_packet_decode(p, p + cases[i].size, cases[i].bip, &k);

		snprintf(what, sizeof what, "case %zu: %s", i, cases[i].text ? cases[i].text : "bad");
		if (!cases[i].text) {
			check_case(n == PT_BAD_PACKET, what, "an invalid packet");
			continue;
		}
		check_case(n == cases[i].size && k.size == n, what, "size");
		if (n <= 0)
			continue;
		pt_packet_text(&k, text, sizeof text);
		snprintf(line, sizeof line, "%s%s%s", pt_type_name(k.type), text[0] ? " " : "", text);
		check_case(strcmp(line, cases[i].text) == 0, what, line);
		for (int cut = 0; cut < n; cut++)
			check_case(pt_packet_decode(p, p + cut, cases[i].bip, &k) == PT_NEED_MORE_BYTES, what,
				   "cut short");
	}
}

/* IP packets: each opcode with each IPBytes (SDM, "IP Compression"). */
static void ip_packets(void)
{
	static const struct {
		unsigned op, type;
	} with_ip[] = {{0x0d, PT_TIP}, {0x11, PT_TIP_PGE}, {0x01, PT_TIP_PGD}, {0x1d, PT_FUP}};
	static const int payload[8] = {0, 2, 4, 6, 6, -1, 8, -1};

	for (size_t i = 0; i < 4; i++) {
		for (unsigned ipbytes = 0; ipbytes < 8; ipbytes++) {
			uint8_t b[9] = {(uint8_t)(with_ip[i].op | ipbytes << 5), 1, 2, 3, 4, 5, 6, 7, 8};
			struct pt_packet k;
			int n = pt_packet_decode(b, b + sizeof b, 0, &k);

			if (payload[ipbytes] < 0)
				check(n == PT_BAD_PACKET, "reserved IPBytes");
			else
				check(n == 1 + payload[ipbytes] && k.type == with_ip[i].type &&
					  k.n == ipbytes,
				      "IPBytes");
		}
	}
}

/* Short TNTs: each byte with a stop bit above at least one bit. */
static void short_tnts(void)
{
	for (unsigned v = 4; v < 256; v += 2) {
		uint8_t b = (uint8_t)v;
		struct pt_packet k;
		unsigned bits = 0;

		while (v >> (bits + 2))
			bits++;
		check(pt_packet_decode(&b, &b + 1, 0, &k) == 1 && k.type == PT_TNT_8 && k.n == bits &&
			  k.a == (v >> 1 & ((1u << bits) - 1)),
		      "tnt.8");
	}
}

int main(void)
{
	every_packet();
	ip_packets();
	short_tnts();
	check_case(pt_ip(0x1122334455667788, 1, 0x1234) == 0x1122334455661234, "an IP of 16 bits", "wrong");
	check_case(pt_ip(0x1122334455667788, 2, 0x12345678) == 0x1122334412345678, "an IP of 32 bits",
		   "wrong");
	check_case(pt_ip(0, 3, 0xffff81000000) == 0xffffffff81000000, "an IP, sign extended", "wrong");
	check_case(pt_ip(0x1122334455667788, 4, 0xffff81000000) == 0x1122ffff81000000, "an IP of 48 bits",
		   "wrong");
	check_case(pt_ip(5, 6, 0x8877665544332211) == 0x8877665544332211, "an IP of 64 bits", "wrong");
	return sum_up();
}
