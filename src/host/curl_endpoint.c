#include "host/curl_endpoint.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <sys/socket.h>

#include "host/local_address.h"

/* The dead-peer rule: a quiet connection is probed after 30 s and given up 45 s later; data that
 * nobody acknowledges is given up in the same time. */
#define KEEPALIVE_IDLE_S 30
#define KEEPALIVE_EVERY_S 15
#define KEEPALIVE_PROBES 3
#define UNACKED_MAX_MS ((KEEPALIVE_IDLE_S + KEEPALIVE_EVERY_S * KEEPALIVE_PROBES) * 1000)

static void curlu_done(CURLU **u)
{
    curl_url_cleanup(*u);
}

static struct str url_part(struct curl_endpoint *e, CURLU *u, CURLUPart part, unsigned flags)
{
    char *text = NULL;
    if (curl_url_get(u, part, &text, flags) != CURLUE_OK) {
        return STR_NONE;
    }
    struct str copy = arena_str(&e->memory, str_from(text));
    curl_free(text);
    return copy;
}

/* Go verifies and announces tls-server-name and keeps the server's host everywhere else. libcurl
 * verifies the URL's host, so the URL gets the name, and the connection is sent elsewhere. */
static int curl_endpoint_rename(struct curl_endpoint *e, CURLU *u, struct err *err)
{
    struct str name = arena_str(&e->memory, e->access->tls_server_name);
    struct str host = url_part(e, u, CURLUPART_HOST, 0);
    struct str port = url_part(e, u, CURLUPART_PORT, CURLU_DEFAULT_PORT);
    if (curl_url_set(u, CURLUPART_HOST, name.p, 0) != CURLUE_OK) {
        return err_set(err, ERR_INVALID, "tls-server-name '" STR_FMT "': no host name",
                       STR_ARG(name));
    }
    struct str to = arena_printf(&e->memory, "%s:%s:%s:%s", name.p, port.p, host.p, port.p);
    e->connect_to.data = (char *)(uintptr_t)to.p; /* libcurl only reads it */
    e->host_header = arena_printf(&e->memory, "Host: %s:%s", host.p, port.p);
    return 0;
}

static int curl_endpoint_parse(struct curl_endpoint *e, struct err *err)
{
    const struct cluster_access *access = e->access;
    CLEANUP(curlu_done)
    CURLU *u = curl_url();
    if (u == NULL) {
        out_of_memory(sizeof(*e));
    }
    /* client-go's default: without a scheme it is https as soon as anything of TLS is set. */
    bool secure = access->ca_pem.n > 0 || access->cert_pem.n > 0 || access->insecure;
    struct str text = str_find(access->server, STR("://")) == SIZE_MAX
                          ? arena_printf(&e->memory, "%s" STR_FMT, secure ? "https://" : "http://",
                                         STR_ARG(access->server))
                          : arena_str(&e->memory, access->server);
    CURLUcode code = curl_url_set(u, CURLUPART_URL, text.p, 0);
    struct str scheme = url_part(e, u, CURLUPART_SCHEME, 0);
    e->tls = str_eq(scheme, STR("https"));
    if (access->server.n == 0 || code != CURLUE_OK || (!e->tls && !str_eq(scheme, STR("http")))) {
        return err_set(err, ERR_INVALID, "server '" STR_FMT "': want https://HOST[:PORT][/PATH]",
                       STR_ARG(access->server));
    }
    (void)curl_url_set(u, CURLUPART_QUERY, NULL, 0); /* removing a part cannot fail */
    (void)curl_url_set(u, CURLUPART_FRAGMENT, NULL, 0);
    (void)curl_url_set(u, CURLUPART_USER, NULL, 0);
    (void)curl_url_set(u, CURLUPART_PASSWORD, NULL, 0);
    if (e->tls && access->tls_server_name.n > 0) {
        int r = curl_endpoint_rename(e, u, err);
        if (r < 0) {
            return r;
        }
    }
    e->base = url_part(e, u, CURLUPART_URL, 0);
    while (str_cut_suffix(e->base, STR("/"), &e->base)) {
    }
    return 0;
}

static void bio_done(BIO **bio)
{
    (void)BIO_free(*bio); /* a memory BIO has nothing to flush */
}

static void x509_done(X509 **x)
{
    X509_free(*x);
}

static void pkey_done(EVP_PKEY **k)
{
    EVP_PKEY_free(*k);
}

static X509 *pem_certificate(struct str pem)
{
    CLEANUP(bio_done)
    BIO *bio = BIO_new_mem_buf(pem.p, (int)pem.n);
    X509 *cert = bio == NULL ? NULL : PEM_read_bio_X509(bio, NULL, NULL, NULL);
    ERR_clear_error();
    return cert;
}

static int no_password(char *buf UNUSED, int size UNUSED, int writing UNUSED, void *ctx UNUSED)
{
    return -1; /* never ask at a terminal */
}

int curl_endpoint_check_pair(struct str cert_pem, struct str key_pem, const char *whose,
                             struct err *err)
{
    CLEANUP(x509_done)
    X509 *cert = pem_certificate(cert_pem);
    if (cert == NULL) {
        return err_set(err, ERR_INVALID, "%s: the client certificate is not PEM", whose);
    }
    CLEANUP(bio_done)
    BIO *bio = BIO_new_mem_buf(key_pem.p, (int)key_pem.n);
    CLEANUP(pkey_done)
    EVP_PKEY *key = bio == NULL ? NULL : PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
    ERR_clear_error();
    if (key == NULL) {
        return err_set(err, ERR_INVALID, "%s: the client key is not PEM, or has a password", whose);
    }
    bool match = X509_check_private_key(cert, key) == 1;
    ERR_clear_error();
    return match ? 0
                 : err_set(err, ERR_INVALID, "%s: the client key is not that of the certificate",
                           whose);
}

static int curl_endpoint_check(const struct cluster_access *access, struct err *err)
{
    if (access->ca_pem.n > 0) {
        CLEANUP(x509_done)
        X509 *ca = pem_certificate(access->ca_pem);
        if (ca == NULL) {
            return err_set(err, ERR_INVALID,
                           "certificate-authority: holds no certificate in PEM form");
        }
    }
    if ((access->cert_pem.n > 0) != (access->key_pem.n > 0)) {
        return err_set(err, ERR_INVALID,
                       "a client certificate needs its key, and a key its "
                       "certificate: only one is given");
    }
    return access->cert_pem.n > 0
               ? curl_endpoint_check_pair(access->cert_pem, access->key_pem, "credentials", err)
               : 0;
}

int curl_endpoint_init(struct curl_endpoint *e, const struct cluster_access *access,
                       struct err *err)
{
    *e = (struct curl_endpoint){ .access = access, .memory = { .first = 512 } };
    int r = curl_endpoint_parse(e, err);
    if (r == 0) {
        r = curl_endpoint_check(access, err);
    }
    if (r < 0) {
        curl_endpoint_done(e);
    }
    return r;
}

void curl_endpoint_done(struct curl_endpoint *e)
{
    arena_done(&e->memory);
}

static int curl_on_sockopt(void *ctx UNUSED, curl_socket_t fd, curlsocktype purpose UNUSED)
{
    static const struct {
        int level;
        int name;
        int value;
    } options[] = {
        { SOL_SOCKET, SO_KEEPALIVE, 1 },
        { IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S },
        { IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_EVERY_S },
        { IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES },
        { IPPROTO_TCP, TCP_USER_TIMEOUT, UNACKED_MAX_MS },
    };
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        /* A kernel without one of them still carries the request; deadlines stay. */
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                         sizeof(options[i].value));
    }
    return CURL_SOCKOPT_OK;
}

/* A UNIX socket has no place in any URL of ours. With an endpoint that refuses local addresses this
 * is where they are found, whatever the name resolved to. */
static curl_socket_t curl_on_open_socket(void *ctx, curlsocktype purpose UNUSED,
                                         struct curl_sockaddr *to)
{
    struct curl_endpoint *e = ctx;
    if (to->family != AF_INET && to->family != AF_INET6) {
        return CURL_SOCKET_BAD;
    }
    if (e != NULL && e->access->refuse_local && local_address_is(&to->addr)) {
        int r = getnameinfo(&to->addr, to->addrlen, e->refused, sizeof(e->refused), NULL, 0,
                            NI_NUMERICHOST);
        if (r != 0) {
            (void)snprintf(e->refused, sizeof(e->refused), "unknown");
        }
        return CURL_SOCKET_BAD;
    }
    if (e != NULL) {
        e->refused[0] = '\0'; /* the name has another address, too */
    }
    return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

static struct curl_blob blob_of(struct str s)
{
    return (
        struct curl_blob){ .data = (void *)(uintptr_t)s.p, .len = s.n, .flags = CURL_BLOB_NOCOPY };
}

void curl_endpoint_prepare_any(CURL *easy)
{
    const long no = 0;
    const long yes = 1;
    (void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, yes);
    /* A name that takes long to resolve would hold up the loop when its request is given up. */
    (void)curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, yes);
    (void)curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, no);
    (void)curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, yes);
    (void)curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, yes);
    (void)curl_easy_setopt(easy, CURLOPT_USERAGENT, "drydock/" DRYDOCK_VERSION);
    (void)curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)CURL_ENDPOINT_UPLOAD_BUFFER);
    (void)curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, curl_on_open_socket);
    (void)curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, NULL);
    (void)curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, curl_on_sockopt);
    (void)curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
}

void curl_endpoint_prepare(struct curl_endpoint *e, CURL *easy)
{
    const struct cluster_access *access = e->access;
    const long no = 0;
    const long yes = 1;
    curl_endpoint_prepare_any(easy);
    (void)curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, e);
    (void)curl_easy_setopt(easy, CURLOPT_PROXY, access->proxy_url.n > 0 ? access->proxy_url.p : "");
    (void)curl_easy_setopt(easy, CURLOPT_NOPROXY, ""); /* decided already */
    if (e->connect_to.data != NULL) {
        (void)curl_easy_setopt(easy, CURLOPT_CONNECT_TO, &e->connect_to);
    }
    if (!e->tls) {
        return;
    }
    (void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, access->insecure ? no : yes);
    (void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, access->insecure ? no : (long)2);
    if (access->ca_pem.n > 0) {
        struct curl_blob ca = blob_of(access->ca_pem);
        (void)curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &ca);
    }
}

/* What the server's certificate lacks, in the words people search for. */
static int error_certificate(CURL *easy, const char *detail, struct err *err)
{
    long verify = 0;
    (void)curl_easy_getinfo(easy, CURLINFO_SSL_VERIFYRESULT, &verify);
    switch (verify) {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
        return err_set(err, ERR_DENIED, "certificate signed by unknown authority (%s)",
                       X509_verify_cert_error_string(verify));
    case X509_V_OK:
    case X509_V_ERR_UNSPECIFIED: /* libcurl's mark for a check that OpenSSL had no part in */
        return err_set(err, ERR_DENIED, "the certificate is not for this host (%s)", detail);
    default:
        return err_set(err, ERR_DENIED, "the certificate does not verify (%s)",
                       X509_verify_cert_error_string(verify));
    }
}

static int error_connect(CURL *easy, CURLcode code, const char *detail, struct err *err)
{
    long os = 0;
    (void)curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &os);
    if (os != 0) {
        return err_set_os(err, (int)os, "cannot connect");
    }
    return err_set(err, ERR_IO, "cannot connect: %s",
                   detail[0] != '\0' ? detail : curl_easy_strerror(code));
}

int curl_endpoint_explain(CURL *easy, CURLcode code, const char *detail, struct err *err)
{
    const char *words = detail[0] != '\0' ? detail : curl_easy_strerror(code);
    switch (code) {
    case CURLE_COULDNT_CONNECT:
        (void)error_connect(easy, code, detail, err);
        break;
    case CURLE_COULDNT_RESOLVE_HOST:
        (void)err_set(err, ERR_NOTFOUND, "no such host (%s)", words);
        break;
    case CURLE_PEER_FAILED_VERIFICATION:
        (void)error_certificate(easy, words, err);
        break;
    case CURLE_OPERATION_TIMEDOUT:
        (void)err_set(err, ERR_TIMEOUT, "no connection in time (%s)", words);
        break;
    case CURLE_SSL_CONNECT_ERROR:
        (void)err_set(err, ERR_PROTO, "the TLS handshake failed (%s)", words);
        break;
    case CURLE_SSL_CERTPROBLEM:
        (void)err_set(err, ERR_INVALID, "the client certificate cannot be used (%s)", words);
        break;
    case CURLE_GOT_NOTHING:
        (void)err_set(err, ERR_IO, "closed the connection without an answer");
        break;
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
        (void)err_set(err, ERR_IO, "the answer broke off (%s)", words);
        break;
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
        (void)err_set(err, ERR_PROTO, "the answer is not HTTP (%s)", words);
        break;
    default:
        (void)err_set(err, ERR_IO, "%s", words);
        break;
    }
    return -(int)err->code;
}

int curl_endpoint_error(struct curl_endpoint *e, CURL *easy, CURLcode code, const char *detail,
                        struct err *err)
{
    if (code == CURLE_COULDNT_CONNECT && e->refused[0] != '\0') {
        (void)err_set(err, ERR_DENIED,
                      "address %s is a loopback or link-local address, which is not allowed here",
                      e->refused);
        e->refused[0] = '\0';
    } else {
        (void)curl_endpoint_explain(easy, code, detail, err); /* the code is what is wanted */
    }
    return err_wrap(err, "server '" STR_FMT "'", STR_ARG(e->access->server));
}
