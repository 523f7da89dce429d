#include "host/expiry.h"

#include "base/base64.h"
#include "host/file.h"
#include "host/pki.h"
#include "tests/check.h"

#include <stdlib.h>
#include <unistd.h>

#define BEGIN ((usec_t)1800000000 * SECONDS(1))

/* A JWT with these claims, in the alphabet of URLs and without padding. */
static struct str token_with(struct arena *out, struct str claims)
{
    struct str body = base64_encode(out, claims);
    char *text = arena_alloc(out, body.n);
    size_t n = 0;
    for (size_t i = 0; i < body.n && body.p[i] != '='; i++) {
        text[n++] = body.p[i] == '+' ? '-' : body.p[i] == '/' ? '_' : body.p[i];
    }
    return arena_printf(out, "eyJhbGciOiJub25lIn0.%.*s.c2ln", (int)n, text);
}

TEST(expiry_of_a_token_is_its_claim)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct {
        const char *claims;
        usec_t wanted;
    } cases[] = {
        { "{\"exp\":1800000000,\"sub\":\"system:serviceaccount:a:b\"}", BEGIN },
        { "{\"exp\":1800000000}", BEGIN },
        { "{\"exp\":1800000000 ,\"x\":\"\xc3\xbf\xc3\xbe~?>\"}", BEGIN }, /* digits of URLs */
        { "{\"exp\":\"soon\"}", 0 },
        { "{\"exp\":-5}", 0 },
        { "{\"exp\":9223372036854775807}", 0 },
        { "{}", 0 },
        { "[1]", 0 },
        { "{\"exp\":1800000000", 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_EQ(expiry_of_token(token_with(&tmp, str_from(cases[i].claims))), cases[i].wanted);
    }
    CHECK_EQ(expiry_of_token(STR("abcdef.0123456789abcdef")), 0);
    CHECK_EQ(expiry_of_token(STR("a..b")), 0);
    CHECK_EQ(expiry_of_token(STR("a.%%%%.b")), 0);
    CHECK_EQ(expiry_of_token(STR_NONE), 0);
}

TEST(expiry_of_a_certificate_is_its_end)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err err = { 0 };
    struct pki pki;
    CHECK_EQ(pki_make(BEGIN, &tmp, &pki, &err), 0);
    CHECK_EQ(expiry_of_certificate(pki.client_cert), BEGIN + DAYS(365));
    CHECK_EQ(expiry_of_certificate(pki.client_key), 0);
    CHECK_EQ(expiry_of_certificate(str_sub(pki.client_cert, 0, pki.client_cert.n / 2)), 0);
    CHECK_EQ(expiry_of_certificate(STR_NONE), 0);
}

TEST(expiry_of_an_access_follows_the_file_of_its_token)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err err = { 0 };
    char folder[] = "/tmp/drydock-expiry-XXXXXX";
    CHECK(mkdtemp(folder) != NULL);
    struct str path = arena_printf(&tmp, "%s/token", folder);
    struct cluster_access access = { .token = token_with(&tmp, STR("{\"exp\":7}")) };
    CHECK_EQ(expiry_of_access(&access).token, SECONDS(7));
    access.token_file = path;
    CHECK_EQ(expiry_of_access(&access).token, 0); /* there is no such file */
    CHECK_EQ(file_replace(path, token_with(&tmp, STR("{\"exp\":8}")), &err), 0);
    CHECK_EQ(expiry_of_access(&access).token, SECONDS(8));
    struct str line = arena_concat(&tmp, token_with(&tmp, STR("{\"exp\":9}")), STR("\n"));
    CHECK_EQ(file_replace(path, line, &err), 0);
    CHECK_EQ(expiry_of_access(&access).token, SECONDS(9));
    CHECK_EQ(expiry_of_access(&access).certificate, 0);
    CHECK_EQ(unlink(path.p), 0);
    CHECK_EQ(rmdir(folder), 0);
}
