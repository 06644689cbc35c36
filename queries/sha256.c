/* sha256.c - see sha256.h. The names are the standard's. */
#include "queries/sha256.h"

#include <stdint.h>
#include <string.h>

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotr(uint32_t x, unsigned n)
{
	return x >> n | x << (32 - n);
}

static void take_block(uint32_t H[8], const uint8_t *p)
{
	uint32_t W[64], v[8];

	for (int t = 0; t < 16; t++)
		W[t] = (uint32_t)p[4 * t] << 24 | (uint32_t)p[4 * t + 1] << 16 | (uint32_t)p[4 * t + 2] << 8 |
		       p[4 * t + 3];
	for (int t = 16; t < 64; t++)
		W[t] = (rotr(W[t - 2], 17) ^ rotr(W[t - 2], 19) ^ W[t - 2] >> 10) + W[t - 7] +
		       (rotr(W[t - 15], 7) ^ rotr(W[t - 15], 18) ^ W[t - 15] >> 3) + W[t - 16];
	memcpy(v, H, sizeof v);
	for (int t = 0; t < 64; t++) {
		uint32_t T1 = v[7] + (rotr(v[4], 6) ^ rotr(v[4], 11) ^ rotr(v[4], 25)) +
			      ((v[4] & v[5]) ^ (~v[4] & v[6])) + K[t] + W[t];
		uint32_t T2 = (rotr(v[0], 2) ^ rotr(v[0], 13) ^ rotr(v[0], 22)) +
			      ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));

		memmove(v + 1, v, 7 * sizeof *v);
		v[4] += T1;
		v[0] = T1 + T2;
	}
	for (int i = 0; i < 8; i++)
		H[i] += v[i];
}

/* The last bytes, a 1, zeros, and how many bits there were: one block or two. */
static void take_end(uint32_t H[8], const uint8_t *p, size_t rest, uint64_t bits)
{
	uint8_t end[128] = {0};
	size_t bytes = rest < 56 ? 64 : 128;

	if (rest)
		memcpy(end, p, rest);
	end[rest] = 0x80;
	for (int i = 0; i < 8; i++)
		end[bytes - 1 - i] = (uint8_t)(bits >> 8 * i);
	for (size_t i = 0; i < bytes; i += 64)
		take_block(H, end + i);
}

void sha256_base64(const void *bytes, size_t n, char ret[SHA256_BASE64_BYTES])
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t H[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
			 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
	uint8_t hash[33] = {0}; /* and one of zeros, for whole groups of three */
	size_t i = 0;

	for (; n - i >= 64; i += 64)
		take_block(H, (const uint8_t *)bytes + i);
	take_end(H, (const uint8_t *)bytes + i, n - i, (uint64_t)n * 8);
	for (i = 0; i < 32; i++)
		hash[i] = (uint8_t)(H[i / 4] >> (24 - 8 * (i % 4)));
	for (i = 0; i < 33; i += 3) {
		uint32_t group = (uint32_t)hash[i] << 16 | (uint32_t)hash[i + 1] << 8 | hash[i + 2];

		for (int k = 0; k < 4; k++)
			ret[i / 3 * 4 + k] = digits[group >> (18 - 6 * k) & 63];
	}
	memcpy(ret + 43, "=", 2);
}
