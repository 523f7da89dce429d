#include "format/digest.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

/* libcrypto fails here only when it has no memory or was built without SHA-256: both end the
 * process, as any lack of memory does. */

void sha256(struct str bytes, unsigned char out[SHA256_BYTES])
{
    int done = EVP_Digest(bytes.p, bytes.n, out, NULL, EVP_sha256(), NULL);
    ASSERT(done == 1);
}

uint64_t sha256_u64(struct str bytes)
{
    unsigned char hash[SHA256_BYTES];
    uint64_t number = 0;
    sha256(bytes, hash);
    for (size_t i = 0; i < sizeof(number); i++) {
        number = number << 8 | hash[i];
    }
    return number;
}

void sha256_hmac(struct str key, struct str bytes, unsigned char out[SHA256_BYTES])
{
    /* Without a key, NULL would ask for the key of the call before. */
    const char *start = key.p != NULL ? key.p : "";
    ASSERT(key.n <= INT_MAX);
    const unsigned char *done =
        HMAC(EVP_sha256(), start, (int)key.n, (const unsigned char *)bytes.p, bytes.n, out, NULL);
    ASSERT(done != NULL);
}
