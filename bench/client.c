/*
 * client: sends one request an object to an API server, as fast as plain connections can.
 *
 *     client POST|PATCH|DELETE CONNECTIONS COUNT TEMPLATE HOST PORT CA CERT KEY PATH
 *     client FOLLOW CONNECTIONS COUNT TEMPLATE HOST PORT CA CERT KEY PATH
 *
 * The yardstick of the benchmark: what the API server itself takes for N writes. Each connection is
 * a process with a blocking keep-alive TLS connection and nothing else, which sends, waits for the
 * answer and goes on; so the client costs next to nothing and the server bounds the time. @NAME@ in
 * template and path stands for the object's name (bench-00000, …). Prints the seconds taken; exit 1
 * when an answer is not a 2xx.
 *
 * FOLLOW is the actor of the benchmark of requests: it watches MaintenanceRequests at PATH and
 * patches each that is approved, once, from those connections. When COUNT of them are in their last
 * phase it prints the time (the monotonic clock's) at which it saw the last, and ends.
 */
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BODY_MAX 65536ul    /* a node of the benchmark has some 5 KiB */
#define ANSWER_MAX 262144ul /* the whole node comes back */
#define PATH_BYTES 256ul
#define OBJECTS_MAX 100000u
#define NAME_MARK "\"name\":\"bench-"
#define NAME_FORMAT "bench-%05u"

struct job {
    const char *method;
    const char *host;
    const char *port;
    const char *ca;
    const char *cert;
    const char *key;
    const char *path;
    unsigned connections;
    unsigned count;
    char template[BODY_MAX];
};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "client: %s\n", what);
    ERR_print_errors_fp(stderr);
    exit(1);
}

static unsigned number(const char *text)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (*text == '\0' || *end != '\0' || value > 1000000) {
        die("a number is expected");
    }
    return (unsigned)value;
}

static void read_template(struct job *job, const char *path)
{
    FILE *f = fopen(path, "rbe");
    if (f == NULL) {
        die("the template cannot be read");
    }
    size_t n = fread(job->template, 1, sizeof(job->template) - 1, f);
    job->template[n] = '\0';
    fclose(f);
}

static int dialer_open(const struct job *job)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *found;
    if (getaddrinfo(job->host, job->port, &hints, &found) != 0) {
        die("the host is unknown");
    }
    int fd = socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen) != 0) {
        die("no connection");
    }
    freeaddrinfo(found);
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

static SSL *handshake(const struct job *job)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (context == NULL || SSL_CTX_load_verify_locations(context, job->ca, NULL) != 1 ||
        SSL_CTX_use_certificate_chain_file(context, job->cert) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, job->key, SSL_FILETYPE_PEM) != 1) {
        die("the certificates cannot be used");
    }
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL *tls = SSL_new(context);
    if (tls == NULL || SSL_set_fd(tls, dialer_open(job)) != 1 || SSL_connect(tls) != 1) {
        die("no TLS connection");
    }
    return tls;
}

/* The text with the object's name in it. */
static size_t fill(const char *text, unsigned number, char *out, size_t most)
{
    static const char mark[] = "@NAME@";
    char name[32];
    snprintf(name, sizeof(name), NAME_FORMAT, number);
    size_t length = 0;
    for (const char *p = text; *p != '\0';) {
        bool hit = strncmp(p, mark, sizeof(mark) - 1) == 0;
        const char *piece = hit ? name : p;
        size_t n = hit ? strlen(name) : 1;
        if (length + n >= most) {
            die("a text is too long");
        }
        memcpy(out + length, piece, n);
        length += n;
        p += hit ? sizeof(mark) - 1 : 1;
    }
    out[length] = '\0';
    return length;
}

static void request(const struct job *job, SSL *tls, unsigned number)
{
    static char body[BODY_MAX];
    static char message[BODY_MAX + 1024];
    char path[PATH_BYTES];
    (void)fill(job->path, number, path, sizeof(path));
    size_t length = fill(job->template, number, body, sizeof(body));
    int head = snprintf(message, 1024,
                        "%s %s HTTP/1.1\r\nHost: %s\r\nAccept: application/json\r\n"
                        "Content-Type: application/%sjson\r\nContent-Length: %zu\r\n\r\n",
                        job->method, path, job->host,
                        strcmp(job->method, "PATCH") == 0 ? "merge-patch+" : "", length);
    memcpy(message + head, body, length);
    if (SSL_write(tls, message, head + (int)length) <= 0) {
        die("the connection broke while writing");
    }
}

/* Reads up to the end of one answer: a length, or chunks that end with an empty one. */
static void answer(SSL *tls)
{
    static char text[ANSWER_MAX];
    size_t have = 0;
    for (;;) {
        int n = SSL_read(tls, text + have, (int)(sizeof(text) - 1 - have));
        if (n <= 0) {
            die("the connection broke while reading");
        }
        have += (size_t)n;
        text[have] = '\0';
        char *end = strstr(text, "\r\n\r\n");
        if (end == NULL) {
            continue;
        }
        if (strncmp(text, "HTTP/1.1 2", 10) != 0) {
            fprintf(stderr, "client: %.2000s\n", text);
            exit(1);
        }
        const char *length = strcasestr(text, "\r\nContent-Length: ");
        size_t head = (size_t)(end + 4 - text);
        bool whole = length != NULL && length < end
                         ? have - head >= strtoul(length + 18, NULL, 10)
                         : have - head >= 5 && memcmp(text + have - 5, "0\r\n\r\n", 5) == 0;
        if (whole) {
            return;
        }
    }
}

/* One connection's share of the objects. */
static _Noreturn void serve(const struct job *job, unsigned share)
{
    SSL *tls = handshake(job);
    for (unsigned object = share; object < job->count; object += job->connections) {
        request(job, tls, object);
        answer(tls);
    }
    exit(0);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ── following ─────────────────────────────────────────────────────────────────────────────── */

/* One connection of the actor: patches whose number comes through the pipe. */
static _Noreturn void act(const struct job *job, int numbers)
{
    SSL *tls = handshake(job);
    unsigned number;
    while (read(numbers, &number, sizeof(number)) == (ssize_t)sizeof(number)) {
        request(job, tls, number);
        answer(tls);
    }
    exit(0);
}

/* An old version of HTTP, in which the stream has no chunks to be taken apart. */
static SSL *watch(const struct job *job)
{
    char message[PATH_BYTES + 128];
    SSL *tls = handshake(job);
    int n = snprintf(message, sizeof(message),
                     "GET %s?watch=1 HTTP/1.0\r\nHost: %s\r\nAccept: application/json\r\n\r\n",
                     job->path, job->host);
    if (SSL_write(tls, message, n) <= 0) {
        die("the connection broke while writing");
    }
    return tls;
}

/* One line of the watch; true when a request is in its last phase that was not before. */
static bool note(const struct job *job, const char *line, int numbers)
{
    static bool acted[OBJECTS_MAX];
    static bool ended[OBJECTS_MAX];
    const char *name = strstr(line, NAME_MARK);
    if (name == NULL) {
        return false;
    }
    unsigned long number = strtoul(name + sizeof(NAME_MARK) - 1, NULL, 10);
    if (number >= job->count) {
        return false;
    }
    if (!acted[number] && strstr(line, "\"state\":\"Approved\"") != NULL) {
        unsigned small = (unsigned)number;
        acted[number] = true;
        if (write(numbers, &small, sizeof(small)) != (ssize_t)sizeof(small)) {
            die("the actor's connections are gone");
        }
    }
    bool now = !ended[number] && strstr(line, "\"phase\":\"Completed\"") != NULL;
    ended[number] = ended[number] || now;
    return now;
}

static void follow(const struct job *job, int numbers)
{
    static char text[4 * ANSWER_MAX];
    SSL *tls = watch(job);
    size_t have = 0;
    for (unsigned ended = 0; ended < job->count;) {
        int n = SSL_read(tls, text + have, (int)(sizeof(text) - 1 - have));
        if (n <= 0) {
            die("the watch broke");
        }
        have += (size_t)n;
        text[have] = '\0';
        char *line = text;
        for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            *end = '\0';
            ended += note(job, line, numbers) ? 1 : 0;
        }
        have -= (size_t)(line - text);
        memmove(text, line, have);
    }
    printf("%.3f\n", seconds());
}

static void follow_all(struct job *job)
{
    static char path[PATH_BYTES];
    int ends[2];
    if (pipe(ends) != 0) {
        die("no pipe");
    }
    struct job patch = *job;
    patch.method = "PATCH";
    snprintf(path, sizeof(path), "%s/@NAME@", job->path);
    patch.path = path;
    for (unsigned i = 0; i < job->connections; i++) {
        if (fork() == 0) {
            close(ends[1]); /* so that all ends when the watching process does */
            act(&patch, ends[0]);
        }
    }
    close(ends[0]);
    follow(job, ends[1]);
    close(ends[1]);
}

int main(int argc, char **argv)
{
    static struct job job;
    if (argc != 11) {
        die("usage: client POST|PATCH|DELETE|FOLLOW CONNECTIONS COUNT TEMPLATE HOST PORT CA CERT "
            "KEY PATH");
    }
    job.method = argv[1];
    job.connections = number(argv[2]);
    job.count = number(argv[3]);
    read_template(&job, argv[4]);
    job.host = argv[5];
    job.port = argv[6];
    job.ca = argv[7];
    job.cert = argv[8];
    job.key = argv[9];
    job.path = argv[10];
    bool following = strcmp(job.method, "FOLLOW") == 0;
    if (following && job.count > OBJECTS_MAX) {
        die("too many to follow");
    }

    double start = seconds();
    if (following) {
        follow_all(&job);
    }
    for (unsigned i = 0; i < job.connections && !following; i++) {
        if (fork() == 0) {
            serve(&job, i);
        }
    }
    int bad = 0;
    int status;
    while (wait(&status) > 0) {
        bad |= status;
    }
    if (!following) {
        printf("%.3f\n", seconds() - start);
    }
    return bad != 0;
}
