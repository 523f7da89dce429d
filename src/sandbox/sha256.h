/*
 * sha256: FIPS 180-4, for the hashes that discovery shows. Nothing secret passes through it.
 */
#pragma once

#include "base/str.h"

#define SHA256_BYTES 32u

void sha256(struct str bytes, unsigned char out[SHA256_BYTES]);
