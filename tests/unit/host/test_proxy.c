#include "host/proxy.h"

#include "tests/check.h"

struct env {
    const char *https;
    const char *http;
    const char *no;
};

static const char *env_get(void *ctx, const char *name)
{
    const struct env *env = ctx;
    struct str n = str_from(name);
    if (str_eq(n, STR("HTTPS_PROXY"))) {
        return env->https;
    }
    if (str_eq(n, STR("http_proxy"))) {
        return env->http;
    }
    return str_eq(n, STR("NO_PROXY")) ? env->no : NULL;
}

/* As golang.org/x/net/http/httpproxy decides. */
static const struct {
    const char *server;
    const char *no;
    bool proxied;
} cases[] = {
    { "https://api.example:6443", NULL, true },
    { "https://api.example:6443/prefix", "", true },
    { "http://api.example", NULL, true },
    { "https://localhost:6443", NULL, false },
    { "https://127.0.0.1:6443", NULL, false },
    { "https://127.8.9.1", NULL, false },
    { "https://[::1]:6443", NULL, false },
    { "https://10.1.2.3:6443", "10.0.0.0/8", false },
    { "https://10.1.2.3:6443", "10.2.0.0/16", true },
    { "https://10.1.2.3:6443", "10.1.2.3", false },
    { "https://10.1.2.3:6443", "10.1.2.3:443", true },
    { "https://10.1.2.3:6443", "10.1.2.3:6443", false },
    { "https://[fd00::5]:6443", "fd00::/8", false },
    { "https://[fd00::5]:6443", "fd00::5", false },
    { "https://[fd00::5]:6443", "[fd00::5]:6443", false },
    { "https://api.example", "*", false },
    { "https://api.example", "example", false },
    { "https://api.example", ".example", false },
    { "https://example", ".example", true },
    { "https://example", "*.example", true },
    { "https://api.example", "*.example", false },
    { "https://apiexample", "example", true },
    { "https://API.Example", "api.example", false },
    { "https://api.example", "other , api.example ", false },
    { "https://api.example", "10.0.0.0/99,/8,:,", true },
    { "https://api.example", "api.example:443", false },
    { "https://api.example", "api.example:80", true },
};

TEST(proxy_is_chosen_as_go_chooses_it)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct env env = { .https = "http://p:1", .http = "p:2", .no = cases[i].no };
        struct str proxy = proxy_choose(str_from(cases[i].server), env_get, &env, &a);
        bool tls = str_starts(str_from(cases[i].server), STR("https"));
        struct str want = !cases[i].proxied ? STR_NONE
                          : tls             ? STR("http://p:1")
                                            : STR("http://p:2");
        if (!str_eq(proxy, want)) {
            check_fail(__FILE__, __LINE__, "case %zu: %s: '" STR_FMT "'", i, cases[i].server,
                       STR_ARG(proxy));
        }
    }
    struct env none = { 0 };
    CHECK_EQ(proxy_choose(STR("https://x"), env_get, &none, &a).n, 0);
}

TEST(proxy_url_knows_its_schemes)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct str url;
    CHECK_EQ(proxy_url(STR("socks5://u:p@h:1"), &a, &url, &err), 0);
    CHECK_STR(url, "socks5h://u:p@h:1");
    CHECK_EQ(proxy_url(STR("https://h"), &a, &url, &err), 0);
    CHECK_STR(url, "https://h");
    CHECK_EQ(proxy_url(STR("ftp://h"), &a, &url, &err), -ERR_INVALID);
    CHECK_STR(err.msg, "found 'ftp://h', want http://HOST:PORT, https://HOST:PORT or "
                       "socks5://HOST:PORT, without a path");
}

/* libcurl connects "socks5h://localhost/run/x.sock" to the UNIX socket /run/x.sock. */
TEST(proxy_url_takes_no_path)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    static const char *const wrong[] = {
        "socks5://localhost/run/x.sock",
        "socks5h://localhost/run/x.sock",
        "http://localhost/x",
        "http://h:1//",
        "h/x",
        "unix:/run/x.sock",
        "http://h?x",
        "http://h#x",
        "http://h\\x",
        "socks5://u:p@localhost/x",
        "http://h x",
        "http://",
        "http:///",
        "/run/x.sock",
        "",
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        check_case((int64_t)i);
        struct err err = { 0 };
        struct str url = STR_NONE;
        CHECK_EQ(proxy_url(str_from(wrong[i]), &a, &url, &err), -ERR_INVALID);
        CHECK_EQ(url.n, 0);
        CHECK(!str_contains(str_from(err.msg), STR("u:p")));
    }
    check_case(-1);
    struct err err = { 0 };
    struct str url;
    CHECK_EQ(proxy_url(STR("http://h:3128/"), &a, &url, &err), 0); /* as many write it */
    CHECK_STR(url, "http://h:3128");
    CHECK_EQ(proxy_url(STR("[::1]:3128"), &a, &url, &err), 0);
    CHECK_STR(url, "http://[::1]:3128");
}
