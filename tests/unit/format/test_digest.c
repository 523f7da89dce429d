#include "base/arena.h"
#include "base/hex.h"
#include "format/digest.h"
#include "tests/check.h"

static struct str hex_of(const unsigned char hash[SHA256_BYTES], struct arena *a)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    hex_add(&text, hash, SHA256_BYTES, /* upper= */ false);
    return arena_str(a, buf_str(&text));
}

TEST(sha256_hashes_the_published_examples)
{
    static const struct {
        const char *text;
        const char *hex;
    } cases[] = {
        { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
    };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        unsigned char hash[SHA256_BYTES];
        sha256(str_from(cases[i].text), hash);
        CHECK_STR(hex_of(hash, &a), cases[i].hex);
    }
}

/* RFC 4231, cases 1, 2 and 6. */
TEST(sha256_hmac_agrees_with_the_vectors_of_the_rfc)
{
    char key[131];
    memset(key, 0xaa, sizeof(key));
    const struct {
        struct str key;
        struct str text;
        const char *hex;
    } cases[] = {
        { STR("\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b"
              "\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b"),
          STR("Hi There"), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
        { STR("Jefe"), STR("what do ya want for nothing?"),
          "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
        { { .p = key, .n = sizeof(key) },
          STR("Test Using Larger Than Block-Size Key - Hash Key First"),
          "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
    };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        unsigned char hash[SHA256_BYTES];
        sha256_hmac(cases[i].key, cases[i].text, hash);
        CHECK_STR(hex_of(hash, &a), cases[i].hex);
    }
}

TEST(sha256_u64_is_the_front_of_the_hash)
{
    CHECK(sha256_u64(STR("abc")) == 0xba7816bf8f01cfeaU);
}
