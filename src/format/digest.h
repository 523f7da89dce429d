/*
 * digest: SHA-256 (FIPS 180-4) and HMAC on it (RFC 2104), by libcrypto.
 *
 * For signing and for names only: whoever verifies a signature of others needs a comparison in
 * constant time, which is not here.
 */
#pragma once

#include "base/str.h"

#define SHA256_BYTES 32u

void sha256(struct str bytes, unsigned char out[SHA256_BYTES]);
/* The first eight bytes of the hash as a number, the most significant byte first. */
uint64_t sha256_u64(struct str bytes);
void sha256_hmac(struct str key, struct str bytes, unsigned char out[SHA256_BYTES]);
