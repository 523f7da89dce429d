#include "host/expiry.h"

#include "base/base64.h"
#include "format/json.h"
#include "host/file.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <time.h>

#define EXPIRY_SECONDS_MAX ((int64_t)253402300799) /* the end of the year 9999 */

/* The alphabet of URLs, without padding (RFC 7515 §2), as base64_decode reads it. */
static struct str expiry_plain(struct str url, struct arena *out)
{
    char *text = arena_alloc(out, url.n + 3);
    for (size_t i = 0; i < url.n; i++) {
        char c = url.p[i];
        text[i] = c == '-' ? '+' : c == '_' ? '/' : c;
    }
    size_t n = url.n;
    while (n % 4 != 0) {
        text[n++] = '=';
    }
    return (struct str){ .p = text, .n = n };
}

usec_t expiry_of_token(struct str token)
{
    CLEANUP(arena_wipe)
    struct arena tmp = { 0 };
    struct err ignored = { 0 };
    const struct jval *claims = NULL;
    struct str head, rest, body, signature, json;
    int64_t seconds = 0;
    bool good = str_cut(token, STR("."), &head, &rest) &&
                str_cut(rest, STR("."), &body, &signature) && body.n > 0 &&
                body.n <= CREDENTIAL_FILE_BYTES_MAX &&
                base64_decode(expiry_plain(body, &tmp), &tmp, &json) &&
                json_parse(json, JSON_GO, &tmp, &claims, &ignored) == 0 &&
                jval_i64(jval_get(claims, STR("exp")), &seconds) && seconds > 0 &&
                seconds <= EXPIRY_SECONDS_MAX;
    return good ? seconds * SECONDS(1) : 0;
}

usec_t expiry_of_certificate(struct str pem)
{
    usec_t ret = 0;
    struct tm end = { 0 };
    BIO *bio =
        pem.n > 0 && pem.n <= CREDENTIAL_FILE_BYTES_MAX ? BIO_new_mem_buf(pem.p, (int)pem.n) : NULL;
    X509 *certificate = bio != NULL ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
    if (certificate != NULL && ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) == 1) {
        int64_t seconds = (int64_t)timegm(&end);
        ret = seconds > 0 && seconds <= EXPIRY_SECONDS_MAX ? seconds * SECONDS(1) : 0;
    }
    X509_free(certificate);
    BIO_free(bio);
    ERR_clear_error(); /* text that is no certificate is nobody's error */
    return ret;
}

struct expiry expiry_of_access(const struct cluster_access *access)
{
    CLEANUP(arena_wipe)
    struct arena tmp = { 0 };
    struct err ignored = { 0 };
    struct str token = access->token;
    if (access->token_file.n > 0 &&
        file_read(access->token_file, CREDENTIAL_FILE_BYTES_MAX, &tmp, &token, &ignored) < 0) {
        token = STR_NONE;
    }
    return (struct expiry){
        .token = expiry_of_token(str_trim(token)),
        .certificate = expiry_of_certificate(access->cert_pem),
    };
}
