#include "web/allowed_hosts.h"

#include "web/http_reply.h"

#define HOST_SHOWN_MAX 200u /* characters of a name in our answer; a DNS name has at most 253 */

/* Letters, digits, '-', '_' and '.'; anything else is no name. */
static bool host_is_name(struct str host)
{
    for (size_t i = 0; i < host.n; i++) {
        char c = host.p[i];
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '-' || c == '_' || c == '.';
        if (!good) {
            return false;
        }
    }
    return host.n > 0 && host.p[0] != '.';
}

int allowed_hosts_parse(struct str list, struct arena *out, struct allowed_hosts *ret,
                        struct err *err)
{
    struct str *names = ARENA_ARRAY(out, struct str, ALLOWED_HOSTS_MAX);
    uint32_t n = 0;
    struct str piece;
    while (list.n > 0 && str_split_next(&list, ',', &piece)) {
        struct str name = str_trim(piece);
        struct str below = name;
        bool all = str_eq(name, STR("*"));
        (void)str_cut_prefix(name, STR("*."), &below);
        if (!all && !host_is_name(below)) {
            return err_set(err, ERR_INVALID,
                           "--allowed-hosts '" STR_FMT "': want names without scheme and port, "
                           "such as drydock.example.com or *.example.com, or * for all",
                           STR_ARG(name));
        }
        if (n == ALLOWED_HOSTS_MAX) {
            return err_set(err, ERR_INVALID, "--allowed-hosts: want at most %u names",
                           ALLOWED_HOSTS_MAX);
        }
        names[n++] = name;
    }
    ret->names = names;
    ret->n = n;
    return 0;
}

static bool host_is_below(struct str host, struct str domain)
{
    return host.n > domain.n + 1 && host.p[host.n - domain.n - 1] == '.' &&
           str_eq_fold(str_sub(host, host.n - domain.n, domain.n), domain);
}

/* Four numbers: a browser writes every other spelling of an address like this. */
static bool host_is_ipv4(struct str host)
{
    uint32_t parts = 0;
    struct str piece;
    while (host.n > 0 && str_split_next(&host, '.', &piece)) {
        uint32_t value;
        if (piece.n > 3 || !str_to_u32(piece, &value) || value > 255) {
            return false;
        }
        parts++;
    }
    return parts == 4;
}

/* Without port and without the dot of the root. */
static struct str host_name(struct str host)
{
    struct str port;
    (void)str_cut(host, STR(":"), &host, &port); /* without one it is the host already */
    (void)str_cut_suffix(host, STR("."), &host);
    return host;
}

bool allowed_hosts_allow(const struct allowed_hosts *hosts, struct str host)
{
    static const struct str domains[] = { STR_INIT("svc"), STR_INIT("cluster.local"),
                                          STR_INIT("localhost") };
    struct str left;
    struct str right;
    if (host.n == 0 || host.p[0] == '[') {
        return true; /* a name has no brackets, so this is an address of IPv6 */
    }
    host = host_name(host);
    if (!str_cut(host, STR("."), &left, &right) || host_is_ipv4(host) ||
        (hosts->namespace.n > 0 && str_eq_fold(right, hosts->namespace)) ||
        (hosts->machine.n > 0 && str_eq_fold(host, hosts->machine))) {
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(domains); i++) {
        if (host_is_below(host, domains[i])) {
            return true;
        }
    }
    for (uint32_t i = 0; i < hosts->n; i++) {
        struct str below;
        bool wild = str_cut_prefix(hosts->names[i], STR("*."), &below);
        if (str_eq(hosts->names[i], STR("*")) || str_eq_fold(host, hosts->names[i]) ||
            (wild && host_is_below(host, below))) {
            return true;
        }
    }
    return false;
}

bool allowed_hosts_check(const struct allowed_hosts *hosts, struct inbound_exchange *x,
                         const struct inbound_request *req)
{
    struct str host = req->header(x, "Host");
    if (allowed_hosts_allow(hosts, host) || req->header(x, ALLOWED_HOSTS_CLIENT_HEADER).n > 0) {
        return true;
    }
    CLEANUP(buf_done)
    struct buf text = { 0 };
    host = host_name(host);
    buf_printf(&text,
               "'" STR_FMT "' is none of the names that this server answers for; start it with "
               "--allowed-hosts=" STR_FMT " if it is\n",
               STR_ARG(str_sub(host, 0, MIN(host.n, HOST_SHOWN_MAX))),
               STR_ARG(str_sub(host, 0, MIN(host.n, HOST_SHOWN_MAX))));
    http_reply_text(x, 421, buf_str(&text));
    return false;
}
