/* Tracepoint formats and samples: every kind of field, as JSON; bytes that lie. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/sideband/tracepoint.h"
#include "tests/unit/check.h"

static void same(const char *what, const char *expected, const char *got)
{
	check_text(got ? got : "nothing", expected, what);
}

static const char common[] = "name: x\nID: 7\nformat:\n"
			     "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			     "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
			     "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

/* The fields as JSON, of `raw_bytes` bytes of which the first 8 are common fields. */
static char *json(const char *fields, const void *raw, size_t raw_bytes)
{
	char format[2048];
	uint8_t *exact = malloc(raw_bytes ? raw_bytes : 1); /* a reader beyond its end is caught by ASan */
	struct pt_text_buffer b = {0};
	struct pt_tracepoint *t;

	snprintf(format, sizeof format, "%s%s\nprint fmt: \"%%d\", REC->a\n", common, fields);
	memcpy(exact, raw, raw_bytes);
	t = pt_tracepoint_create(format, strlen(format));
	pt_tracepoint_json(t, exact, raw_bytes, &b);
	pt_tracepoint_destroy(t);
	free(exact);
	return b.text;
}

static void fields(void)
{
	static const struct {
		const char *what, *fields, *raw;
		size_t raw_bytes;
		const char *expected;
	} cases[] = {
	    {"numbers",
	     "\tfield:u8 a;\toffset:8;\tsize:1;\tsigned:0;\n\tfield:s16 b;\toffset:10;\tsize:2;\tsigned:1;\n",
	     "12345678\xff\0\xfe\xff", 12, "\"a\":255,\"b\":-2"},
	    {"an unsigned number of 8 bytes is signed",
	     "\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n",
	     "12345678\x00\x00\x00\x81\xff\xff\xff\xff", 16, "\"ip\":-2130706432"},
	    {"a pointer", "\tfield:const void * p;\toffset:8;\tsize:8;\tsigned:0;\n",
	     "12345678\x05\0\0\0\0\0\0\0", 16, "\"p\":5"},
	    {"a fixed string", "\tfield:char comm[8];\toffset:8;\tsize:8;\tsigned:0;\n",
	     "12345678a\"\\\n\0zzz", 16, "\"comm\":\"a\\\"\\\\\\u000a\""},
	    {"a full one", "\tfield:char comm[4];\toffset:8;\tsize:4;\tsigned:0;\n", "12345678abcd", 12,
	     "\"comm\":\"abcd\""},
	    {"UTF-8 and what is none", "\tfield:char comm[6];\toffset:8;\tsize:6;\tsigned:0;\n",
	     "12345678\xc3\xa9\xff\xc0\x80z", 14, "\"comm\":\"\xc3\xa9\\u00ff\\u00c0\\u0080z\""},
	    {"__data_loc", "\tfield:__data_loc char[] s;\toffset:8;\tsize:4;\tsigned:0;\n",
	     "12345678\x0c\0\x04\0abc\0", 16, "\"s\":\"abc\""},
	    {"__rel_loc", "\tfield:__rel_loc char[] s;\toffset:8;\tsize:4;\tsigned:0;\n",
	     "12345678\x01\0\x02\0.ab", 15, "\"s\":\"ab\""},
	    {"an array of numbers", "\tfield:u16 v[2];\toffset:8;\tsize:4;\tsigned:0;\n",
	     "12345678\x01\0\x02\0", 12, "\"v\":[1,2]"},
	    {"a dynamic array", "\tfield:__data_loc u32[] v;\toffset:8;\tsize:4;\tsigned:0;\n",
	     "12345678\x0c\0\x08\0\x01\0\0\0\x02\0\0\0", 20, "\"v\":[1,2]"},
	    {"unsigned char is a number", "\tfield:unsigned char v[2];\toffset:8;\tsize:2;\tsigned:0;\n",
	     "12345678\x01\xff", 10, "\"v\":[1,255]"},
	    {"an odd size", "\tfield:struct x y;\toffset:8;\tsize:3;\tsigned:0;\n", "12345678\x01\xff\x20",
	     11, "\"y\":\"01ff20\""},
	    {"beyond the sample", "\tfield:u32 a;\toffset:8;\tsize:4;\tsigned:0;\n", "12345678\x01\xff\x20",
	     11, "\"a\":null"},
	    {"a huge offset", "\tfield:u32 a;\toffset:4294967295;\tsize:4;\tsigned:0;\n", "12345678", 8,
	     "\"a\":null"},
	    {"a string beyond the sample", "\tfield:__data_loc char[] s;\toffset:8;\tsize:4;\tsigned:0;\n",
	     "12345678\x0c\0\x05\0abcd", 16, "\"s\":null"},
	    {"a string that begins beyond it",
	     "\tfield:__data_loc char[] s;\toffset:8;\tsize:4;\tsigned:0;\n", "12345678\xff\xff\x01\0", 12,
	     "\"s\":null"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *got = json(cases[i].fields, cases[i].raw, cases[i].raw_bytes);

		same(cases[i].what, cases[i].expected, got);
		free(got);
	}
}

/* As Linux 6.1 prints it. */
static void kvm_exit(void)
{
	static const char text[] =
	    "name: kvm_exit\nID: 1771\nformat:\n"
	    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
	    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
	    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
	    "\tfield:unsigned int exit_reason;\toffset:8;\tsize:4;\tsigned:0;\n"
	    "\tfield:unsigned long guest_rip;\toffset:16;\tsize:8;\tsigned:0;\n"
	    "\tfield:u32 isa;\toffset:24;\tsize:4;\tsigned:0;\n"
	    "\tfield:u64 info1;\toffset:32;\tsize:8;\tsigned:0;\n"
	    "\tfield:u64 info2;\toffset:40;\tsize:8;\tsigned:0;\n"
	    "\tfield:u32 intr_info;\toffset:48;\tsize:4;\tsigned:0;\n"
	    "\tfield:u32 error_code;\toffset:52;\tsize:4;\tsigned:0;\n"
	    "\tfield:unsigned int vcpu_id;\toffset:56;\tsize:4;\tsigned:0;\n\n"
	    "print fmt: \"vcpu %u reason %s%s%s rip 0x%lx info1 0x%016llx info2 0x%016llx intr_info 0x%08x "
	    "error_code 0x%08x\", "
	    "REC->vcpu_id, ...\n";
	struct pt_tracepoint *t = pt_tracepoint_create(text, sizeof text - 1);
	struct pt_text_buffer b = {0};
	uint8_t raw[60] = {0};
	uint64_t v;

	raw[8] = 48;
	raw[16] = 0x10;
	raw[23] = 0xff;
	raw[32] = 0x84;
	raw[51] = 0x80;
	raw[56] = 3;
	pt_tracepoint_json(t, raw, sizeof raw, &b);
	same("kvm_exit",
	     "\"exit_reason\":48,\"guest_rip\":-72057594037927920,\"isa\":0,\"info1\":132,\"info2\":0,"
	     "\"intr_info\":2147483648,\"error_code\":0,\"vcpu_id\":3",
	     b.text);
	check(pt_tracepoint_number(t, raw, sizeof raw, "exit_reason", &v) && v == 48, "its reason");
	check(!pt_tracepoint_number(t, raw, sizeof raw, "reason", &v), "no such field");
	check(!pt_tracepoint_number(t, raw, 11, "exit_reason", &v), "cut before it");
	pt_tracepoint_destroy(t);
	free(b.text);
}

/* No text and no sample may do harm: every cut and every flipped bit of both. */
static void damage(void)
{
	static const char text[] = "\tfield:char comm[8];\toffset:8;\tsize:8;\tsigned:0;\n"
				   "\tfield:__data_loc char[] s;\toffset:16;\tsize:4;\tsigned:0;\n"
				   "\tfield:__rel_loc u32[] v;\toffset:20;\tsize:4;\tsigned:1;\n";
	uint8_t raw[32] = {0};

	for (size_t cut = 0; cut < sizeof text; cut++)
		for (int bit = -1; bit < 8; bit++) {
			char *copy = malloc(sizeof text);
			struct pt_text_buffer b = {0};
			struct pt_tracepoint *t;
			uint8_t *exact = malloc(sizeof raw);

			memcpy(copy, text, sizeof text);
			if (bit >= 0 && cut < sizeof text - 1)
				copy[cut] ^= (char)(1 << bit);
			memset(raw, (int)cut, sizeof raw);
			memcpy(exact, raw, sizeof raw);
			t = pt_tracepoint_create(copy, bit < 0 ? cut : sizeof text - 1);
			pt_tracepoint_json(t, exact, sizeof raw, &b);
			pt_tracepoint_destroy(t);
			free(b.text);
			free(exact);
			free(copy);
		}
	check(true, "no cut and no flipped bit does harm");
}

int main(void)
{
	fields();
	kvm_exit();
	damage();
	return sum_up();
}
