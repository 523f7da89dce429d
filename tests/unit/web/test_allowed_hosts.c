#include "web/allowed_hosts.h"

#include "tests/check.h"
#include "tests/unit/web/exchange_fixture.h"

TEST(allowed_hosts_are_names_that_no_stranger_owns)
{
    static const struct {
        const char *host;
        bool allowed;
    } cases[] = {
        { "", true },
        { "127.0.0.1", true },
        { "10.0.0.7:8080", true },
        { "[::1]", true },
        { "[fd00::7]:8080", true },
        { "localhost:9090", true },
        { "LOCALHOST.", true },
        { "drydock", true },
        { "drydock.localhost:80", true },
        { "drydock.kube-system", true },
        { "drydock.kube-system:8080", true },
        { "drydock.Kube-System.", true },
        { "drydock.other", false },
        { "drydock.other.svc", true },
        { "drydock.kube-system.svc:8080", true },
        { "drydock.kube-system.svc.cluster.local.", true },
        { "10-0-0-7.kube-system.pod.cluster.local", true },
        { "node-1.dc.example.org", true },
        { "node-2.dc.example.org", false },
        { "evil.example", false },
        { "evil.example:8080", false },
        { "evil.example.:8080", false },
        { "127.0.0.1.evil.example", false },
        { "127.0.0.256", false },
        { "127.0.0.1.1", false },
        { "1.2.3", false },
        { "localhost.evil.example", false },
        { "x.kube-system.evil.example", false },
        { "evilsvc.example", false },
        { "evil.notsvc", false },
        { "evil.notcluster.local", false },
        { ".svc", false },
    };
    const struct allowed_hosts hosts = { .machine = STR("node-1.dc.example.org"),
                                         .namespace = STR("kube-system") };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CHECK_EQ(allowed_hosts_allow(&hosts, str_from(cases[i].host)), cases[i].allowed);
    }
    check_case(-1);
    const struct allowed_hosts outside = { 0 };
    CHECK(!allowed_hosts_allow(&outside, STR("drydock.kube-system")));
}

TEST(allowed_hosts_are_also_those_of_the_flag)
{
    static const struct {
        const char *list;
        const char *host;
        bool allowed;
    } cases[] = {
        { "drydock.example.com", "drydock.example.com", true },
        { "drydock.example.com", "Drydock.Example.com:443", true },
        { "drydock.example.com", "a.drydock.example.com", false },
        { "a.example, b.example", "b.example", true },
        { "a.example,b.example,", "c.example", false },
        { "*.example.com", "drydock.example.com", true },
        { "*.example.com", "a.b.example.com", true },
        { "*.example.com", "example.com", false },
        { "*.example.com", "evilexample.com", false },
        { "*", "evil.example", true },
        { "", "evil.example", false },
        { "a.example", "10.0.0.1", true },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena_done)
        struct arena memory = { 0 };
        struct allowed_hosts hosts = { 0 };
        struct err err = { 0 };
        check_case((int64_t)i);
        CHECK_EQ(allowed_hosts_parse(str_from(cases[i].list), &memory, &hosts, &err), 0);
        CHECK_EQ(allowed_hosts_allow(&hosts, str_from(cases[i].host)), cases[i].allowed);
    }
    check_case(-1);
}

TEST(allowed_hosts_of_the_flag_are_names)
{
    static const char *const lists[] = { "http://a.example", "a.example:80", "a.example,,b", "a b",
                                         "*example.com",     "[::1]" };
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        CLEANUP(arena_done)
        struct arena memory = { 0 };
        struct allowed_hosts hosts = { 0 };
        struct err err = { 0 };
        check_case((int64_t)i);
        CHECK_EQ(allowed_hosts_parse(str_from(lists[i]), &memory, &hosts, &err), -ERR_INVALID);
        CHECK(str_contains(str_from(err.msg), STR("want names without scheme and port")));
    }
    check_case(-1);
}

static const char *asked_host;
static const char *asked_client;

static struct str fake_header(const struct inbound_exchange *x UNUSED, const char *name)
{
    bool host = str_eq(str_from(name), STR("Host"));
    return str_from(host ? asked_host : asked_client);
}

TEST(allowed_hosts_refuse_others_with_a_sentence)
{
    static const struct {
        const char *host;
        const char *client;
        bool served;
    } cases[] = {
        { "drydock", NULL, true },
        { NULL, NULL, true },
        { "api.example.com:6443", "1", true }, /* our own client, through the API server */
        { "evil.example:8080", NULL, false },
    };
    const struct allowed_hosts hosts = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(fake_exchange_done)
        struct fake_exchange x = { .door = { .ops = &fake_exchange_ops } };
        const struct inbound_request req = { .header = fake_header };
        check_case((int64_t)i);
        asked_host = cases[i].host;
        asked_client = cases[i].client;
        CHECK_EQ(allowed_hosts_check(&hosts, &x.door, &req), cases[i].served);
        CHECK_EQ(x.status, cases[i].served ? 0 : 421);
        CHECK_STR(buf_str(&x.body),
                  cases[i].served ? ""
                                  : "'evil.example' is none of the names that this server answers "
                                    "for; start it with --allowed-hosts=evil.example if it is\n");
    }
    check_case(-1);
}
