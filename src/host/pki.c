#include "host/pki.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "host/tls_server.h"

#define PKI_DAYS 365

struct pki_pair {
    X509 *cert;
    EVP_PKEY *key;
};

struct pki_wish {
    const char *common_name;
    const char *organization; /* NULL = none */
    const char *uses;         /* extended key usage; NULL = it is an authority */
    const char *names;        /* subject alternative names; NULL = none */
    usec_t wall;
};

static void pki_pair_done(struct pki_pair *pair)
{
    X509_free(pair->cert);
    EVP_PKEY_free(pair->key);
}

static bool pki_extend(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool ok = extension != NULL && X509_add_ext(cert, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return ok;
}

static bool pki_name(X509_NAME *name, const char *field, const char *value)
{
    return X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8, (const unsigned char *)value, -1,
                                      -1, 0) == 1;
}

static bool pki_fill(X509 *cert, X509 *issuer, const struct pki_wish *wish)
{
    uint64_t serial;
    if (RAND_bytes((unsigned char *)&serial, sizeof(serial)) != 1) {
        return false;
    }
    time_t now = (time_t)(wish->wall / 1000000);
    bool ok = X509_set_version(cert, X509_VERSION_3) == 1 &&
              ASN1_INTEGER_set_uint64(X509_get_serialNumber(cert), serial >> 1) == 1 &&
              ASN1_TIME_adj(X509_getm_notBefore(cert), now, 0, -3600) != NULL &&
              ASN1_TIME_adj(X509_getm_notAfter(cert), now, PKI_DAYS, 0) != NULL;
    X509_NAME *name = X509_get_subject_name(cert);
    ok = ok && (wish->organization == NULL || pki_name(name, "O", wish->organization));
    ok = ok && pki_name(name, "CN", wish->common_name);
    ok = ok && X509_set_issuer_name(cert, X509_get_subject_name(issuer)) == 1;
    if (wish->uses == NULL) {
        return ok && pki_extend(cert, issuer, NID_basic_constraints, "critical,CA:TRUE") &&
               pki_extend(cert, issuer, NID_key_usage, "critical,keyCertSign,digitalSignature") &&
               pki_extend(cert, issuer, NID_subject_key_identifier, "hash");
    }
    ok = ok && pki_extend(cert, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
         pki_extend(cert, issuer, NID_key_usage, "critical,digitalSignature") &&
         pki_extend(cert, issuer, NID_ext_key_usage, wish->uses) &&
         pki_extend(cert, issuer, NID_authority_key_identifier, "keyid:always");
    return ok &&
           (wish->names == NULL || pki_extend(cert, issuer, NID_subject_alt_name, wish->names));
}

/* Signed by `issuer`, or by itself when that is NULL. */
static int pki_issue(const struct pki_pair *issuer, const struct pki_wish *wish,
                     struct pki_pair *ret, struct err *err)
{
    struct pki_pair pair = { .cert = X509_new(), .key = EVP_EC_gen("P-256") };
    bool ok = pair.cert != NULL && pair.key != NULL && X509_set_pubkey(pair.cert, pair.key) == 1;
    const struct pki_pair *by = issuer != NULL ? issuer : &pair;
    ok = ok && pki_fill(pair.cert, by->cert, wish) &&
         X509_sign(pair.cert, by->key, EVP_sha256()) > 0;
    if (!ok) {
        pki_pair_done(&pair);
        return tls_server_fail(err, "make a certificate");
    }
    *ret = pair;
    return 0;
}

static struct str pki_text(BIO *bio, struct arena *out)
{
    char *text;
    long n = BIO_get_mem_data(bio, &text);
    struct str copy = arena_str(out, (struct str){ .p = text, .n = (size_t)n });
    BIO_free(bio);
    return copy;
}

static struct str pki_cert_pem(X509 *cert, struct arena *out)
{
    BIO *bio = BIO_new(BIO_s_mem());
    if (bio == NULL || PEM_write_bio_X509(bio, cert) != 1) {
        out_of_memory(0);
    }
    return pki_text(bio, out);
}

static struct str pki_key_pem(EVP_PKEY *key, struct arena *out)
{
    BIO *bio = BIO_new(BIO_s_mem());
    if (bio == NULL || PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) != 1) {
        out_of_memory(0);
    }
    return pki_text(bio, out);
}

int pki_make(usec_t wall, struct arena *out, struct pki *ret, struct err *err)
{
    CLEANUP(pki_pair_done)
    struct pki_pair ca = { 0 };
    CLEANUP(pki_pair_done)
    struct pki_pair server = { 0 };
    CLEANUP(pki_pair_done)
    struct pki_pair client = { 0 };
    int r = pki_issue(NULL, &(struct pki_wish){ .common_name = "drydock-sandbox", .wall = wall },
                      &ca, err);
    if (r == 0) {
        r = pki_issue(&ca,
                      &(struct pki_wish){ .common_name = "kube-apiserver",
                                          .uses = "serverAuth",
                                          .names = "DNS:localhost,DNS:kubernetes,IP:127.0.0.1,"
                                                   "IP:::1",
                                          .wall = wall },
                      &server, err);
    }
    if (r == 0) {
        r = pki_issue(&ca,
                      &(struct pki_wish){ .common_name = "kubernetes-admin",
                                          .organization = "system:masters",
                                          .uses = "clientAuth",
                                          .wall = wall },
                      &client, err);
    }
    if (r < 0) {
        return r;
    }
    *ret = (struct pki){
        .ca_cert = pki_cert_pem(ca.cert, out),
        .server_cert = pki_cert_pem(server.cert, out),
        .server_key = pki_key_pem(server.key, out),
        .client_cert = pki_cert_pem(client.cert, out),
        .client_key = pki_key_pem(client.key, out),
    };
    return 0;
}
