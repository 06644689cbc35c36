/* Address filters as perf writes them: what they let through. */
#include "decode/code/address_filter.h"
#include "tests/unit/check.h"

#define BASE 0x400000

static struct img_space space;

static bool out(const char *text, uint64_t ip)
{
	struct pt_filter f;

	pt_filter_parse(&f, text);
	return pt_filter_shuts_out(&f, &space, ip);
}

int main(void)
{
	struct img_store *s = img_store_create();
	uint8_t code[64] = {0};
	struct ptc_image image = {
	    .kind = PTC_IMAGE_FILE, .name = "/bin/x", .name_bytes = 6, .bytes = code, .size = sizeof code};
	const char *x = "filter 0x1010/0x20@/bin/x",
		   *both = "filter 0x1010/0x8@/bin/x,filter 0x1020/0x8@/bin/x";
	struct pt_error e;

	img_space_init(&space);
	check(s && img_store_image(s, &image, &e) == 0, "image");
	check(img_space_map(&space, BASE, BASE + 64, 0x1000, img_store_find(s, 0, "/bin/x", NULL, 0), &e) ==
		  0,
	      "mapped");
	check(img_space_map(&space, BASE + 0x1000, BASE + 0x2000, 0x1000, NULL, &e) == 0,
	      "mapped without a file");

	check(!out(NULL, BASE) && !out("", BASE), "no filter lets all through");
	check(out(x, BASE + 0xf) && !out(x, BASE + 0x10), "the first address");
	check(!out(x, BASE + 0x2f) && out(x, BASE + 0x30), "the last address");
	check(out("filter 0x1010/0x20@/bin/y", BASE + 0x10), "another file");
	check(out("filter 0x1010/0x20@/bin/xy", BASE + 0x10), "a file with a name that begins so");
	check(!out(x, BASE + 0x1000), "a file that is not known");
	check(!out(both, BASE + 0x10) && !out(both, BASE + 0x20) && out(both, BASE + 0x18), "two ranges");
	check(out("stop 0x1010/0x8@/bin/x", BASE + 0x10) && !out("stop 0x1010/0x8@/bin/x", BASE + 0x18),
	      "a range to stop at");
	check(out("filter 0x1000/0x40@/bin/x,stop 0x1010/0x8@/bin/x", BASE + 0x10), "both");
	check(!out("filter 0x400000 / 0x10", BASE) && out("filter 0x400000/0x10", BASE + 0x10), "by address");
	check(!out("filter main@/bin/x", BASE) && !out("filter 0x1/0x1@/bin/x nonsense, x", BASE),
	      "no such text");

	img_space_deinit(&space);
	img_store_destroy(s);
	return sum_up();
}
