/*
 * sha256: FIPS 180-4, for the hashes that discovery shows, and HMAC (RFC 2104) on it, which signs
 * what a webhook is sent.
 *
 * Signing only: whoever verifies a signature of others needs a comparison in constant time, which
 * is not here.
 */
#pragma once

#include "base/str.h"

#define SHA256_BYTES 32u

void sha256(struct str bytes, unsigned char out[SHA256_BYTES]);
void sha256_hmac(struct str key, struct str bytes, unsigned char out[SHA256_BYTES]);
