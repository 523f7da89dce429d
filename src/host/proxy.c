#include "host/proxy.h"

#include <arpa/inet.h>

#define PROXY_SHOWN_MAX 200u /* bytes of a wrong URL in a message */

struct ip {
    int family; /* 0 = no address */
    unsigned char bytes[16];
};

static struct ip ip_parse(struct str text)
{
    char name[64];
    struct ip ip = { 0 };
    if (text.n == 0 || text.n >= sizeof(name)) {
        return ip;
    }
    memcpy(name, text.p, text.n);
    name[text.n] = '\0';
    if (inet_pton(AF_INET, name, ip.bytes) == 1) {
        ip.family = AF_INET;
    } else if (inet_pton(AF_INET6, name, ip.bytes) == 1) {
        ip.family = AF_INET6;
    }
    return ip;
}

static bool ip_same_net(const struct ip *a, const struct ip *b, uint32_t bits)
{
    if (a->family != b->family || a->family == 0) {
        return false;
    }
    for (uint32_t i = 0; i < bits; i++) {
        unsigned mask = 0x80u >> (i % 8);
        if (((unsigned)a->bytes[i / 8] & mask) != ((unsigned)b->bytes[i / 8] & mask)) {
            return false;
        }
    }
    return true;
}

static bool ip_loopback(const struct ip *ip)
{
    static const unsigned char one[16] = { [15] = 1 };
    return (ip->family == AF_INET && ip->bytes[0] == 127) ||
           (ip->family == AF_INET6 && memcmp(ip->bytes, one, sizeof(one)) == 0);
}

/* "host", "host:port", "[v6]:port"; a bare v6 address has no port. */
static void host_cut(struct str text, struct str *ret_host, struct str *ret_port)
{
    struct str rest;
    *ret_port = STR_NONE;
    if (str_cut_prefix(text, STR("["), &rest)) {
        struct str after;
        (void)str_cut(rest, STR("]"), ret_host, &after); /* without ']' it is all host */
        (void)str_cut_prefix(after, STR(":"), ret_port);
        return;
    }
    size_t colon = str_rfind_char(text, ':');
    if (colon == SIZE_MAX || str_find_char(text, ':') != colon) {
        *ret_host = text;
        return;
    }
    *ret_host = str_sub(text, 0, colon);
    *ret_port = str_sub(text, colon + 1, SIZE_MAX);
}

struct target {
    struct str host; /* lower case */
    struct str port;
    struct ip ip;
};

/* One entry of NO_PROXY, as golang.org/x/net/http/httpproxy reads it. */
static bool entry_matches(struct str entry, const struct target *t)
{
    struct str net;
    struct str bits_text;
    uint32_t bits;
    if (str_cut(entry, STR("/"), &net, &bits_text)) {
        struct ip ip = ip_parse(net);
        uint32_t most = ip.family == AF_INET ? 32 : 128;
        return str_to_u32(bits_text, &bits) && bits <= most && ip_same_net(&ip, &t->ip, bits);
    }
    struct str host;
    struct str port;
    host_cut(entry, &host, &port);
    if (host.n == 0 || (port.n > 0 && !str_eq(port, t->port))) {
        return false;
    }
    struct ip ip = ip_parse(host);
    if (ip.family != 0) {
        return ip_same_net(&ip, &t->ip, ip.family == AF_INET ? 32 : 128);
    }
    if (str_starts(host, STR("*."))) {
        host = str_sub(host, 1, SIZE_MAX);
    }
    if (host.p[0] == '.') {
        return t->host.n > host.n &&
               str_eq_fold(str_sub(t->host, t->host.n - host.n, SIZE_MAX), host);
    }
    bool below = t->host.n > host.n && t->host.p[t->host.n - host.n - 1] == '.' &&
                 str_eq_fold(str_sub(t->host, t->host.n - host.n, SIZE_MAX), host);
    return below || str_eq_fold(t->host, host);
}

static bool excepted(struct str list, const struct target *t)
{
    if (str_eq_fold(t->host, STR("localhost")) || ip_loopback(&t->ip)) {
        return true;
    }
    struct str entry;
    while (list.n > 0 && str_split_next(&list, ',', &entry)) {
        entry = str_trim(entry);
        if (str_eq(entry, STR("*")) || (entry.n > 0 && entry_matches(entry, t))) {
            return true;
        }
    }
    return false;
}

static struct str env_either(proxy_env env, void *ctx, const char *upper, const char *lower)
{
    struct str value = str_from(env(ctx, upper));
    return value.n > 0 ? value : str_from(env(ctx, lower));
}

struct str proxy_choose(struct str server, proxy_env env, void *ctx, struct arena *out)
{
    struct str scheme;
    struct str rest;
    if (!str_cut(server, STR("://"), &scheme, &rest)) {
        rest = server;
        scheme = STR("http");
    }
    bool tls = str_eq_fold(scheme, STR("https"));
    struct str proxy = tls ? env_either(env, ctx, "HTTPS_PROXY", "https_proxy")
                           : env_either(env, ctx, "HTTP_PROXY", "http_proxy");
    if (proxy.n == 0) {
        return STR_NONE;
    }
    struct target t = { 0 };
    struct str authority;
    struct str path;
    (void)str_cut(rest, STR("/"), &authority, &path); /* without a path it is all authority */
    host_cut(authority, &t.host, &t.port);
    if (t.port.n == 0) {
        t.port = tls ? STR("443") : STR("80");
    }
    t.ip = ip_parse(t.host);
    if (excepted(env_either(env, ctx, "NO_PROXY", "no_proxy"), &t)) {
        return STR_NONE;
    }
    struct err ignored = { 0 };
    struct str url;
    /* Go takes "host:port" for "http://host:port"; what is no URL at all fails at the connection,
     * with its name in the message. */
    return proxy_url(proxy, out, &url, &ignored) == 0 ? url : arena_str(out, proxy);
}

/* HOST[:PORT], perhaps with USER:PASSWORD@ before it and one '/' behind it. To libcurl the path of
 * a SOCKS proxy at localhost is the name of a UNIX socket, so a path is never handed on. */
static bool proxy_authority(struct str rest, struct str *ret)
{
    (void)str_cut_suffix(rest, STR("/"), &rest); /* Go and curl users write it; it says nothing */
    for (size_t i = 0; i < rest.n; i++) {
        unsigned char c = (unsigned char)rest.p[i];
        if (c <= ' ' || c == 0x7f || c == '/' || c == '\\' || c == '?' || c == '#') {
            return false;
        }
    }
    *ret = rest;
    return rest.n > 0;
}

int proxy_url(struct str url, struct arena *out, struct str *ret, struct err *err)
{
    struct str whole = url;
    static const struct {
        struct str go;
        struct str curl;
    } schemes[] = {
        { STR_INIT("http://"), STR_INIT("http://") },
        { STR_INIT("https://"), STR_INIT("https://") },
        { STR_INIT("socks5://"), STR_INIT("socks5h://") },
        { STR_INIT("socks5h://"), STR_INIT("socks5h://") },
    };
    struct str rest;
    struct str authority;
    struct str scheme = str_find(url, STR("://")) == SIZE_MAX ? STR("http://") : STR_NONE;
    for (size_t i = 0; i < ARRAY_LEN(schemes) && scheme.n == 0; i++) {
        if (str_cut_prefix(url, schemes[i].go, &rest)) {
            scheme = schemes[i].curl;
            url = rest;
        }
    }
    if (scheme.n > 0 && proxy_authority(url, &authority)) {
        *ret = arena_concat(out, scheme, authority);
        return 0;
    }
    size_t user_end = str_rfind_char(whole, '@'); /* before it may be a password */
    struct str shown = user_end == SIZE_MAX ? whole : str_sub(whole, user_end, SIZE_MAX);
    return err_set(err, ERR_INVALID,
                   "found '%s" STR_FMT "', want http://HOST:PORT, https://HOST:PORT or "
                   "socks5://HOST:PORT, without a path",
                   user_end == SIZE_MAX ? "" : "…", STR_ARG(str_sub(shown, 0, PROXY_SHOWN_MAX)));
}
