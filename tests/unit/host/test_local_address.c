#include "host/local_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "base/defs.h"
#include "tests/check.h"

static const struct {
    const char *host;
    bool local;
} cases[] = {
    { "127.0.0.1", true },
    { "127.255.255.254", true },
    { "0.0.0.0", true },
    { "0.1.2.3", true },
    { "169.254.169.254", true },
    { "::1", true },
    { "::", true },
    { "fe80::1", true },
    { "febf::1", true },
    { "fe80::1%eth0", true },
    { "fe80::1%25eth0", true },
    { "::ffff:127.0.0.1", true },
    { "::ffff:169.254.1.1", true },
    { "::ffff:0.0.0.0", true },
    { "::127.0.0.1", true },
    { "127.1", true },
    { "0x7f.1", true },
    { "0x7f000001", true },
    { "2130706433", true },
    { "017700000001", true },
    { "0", true },
    { "localhost", true },
    { "LocalHost.", true },
    { "x.localhost", true },
    { "128.0.0.1", false },
    { "126.255.255.255", false },
    { "10.0.0.1", false },
    { "169.253.255.255", false },
    { "169.255.0.1", false },
    { "1.127.0.0", false },
    { "::ffff:10.0.0.1", false },
    { "fec0::1", false },
    { "fd00::1", false },
    { "2001:db8::1", false },
    { "::1:0:0:1", false },
    { "api.example", false },
    { "localhost.example", false },
    { "notlocalhost", false },
    { "", false },
    { "127.0.0.1.example.with.a.name.that.is.longer.than.any.address.can.be.at.all", false },
};

TEST(local_address_host_knows_every_form_of_an_address)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CHECK_EQ(local_address_host(str_from(cases[i].host)), cases[i].local);
    }
    check_case(-1);
}

TEST(local_address_is_judges_what_is_connected_to)
{
    uint32_t judged = 0;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct sockaddr_in v4 = { .sin_family = AF_INET };
        struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
        if (inet_pton(AF_INET, cases[i].host, &v4.sin_addr) == 1) {
            CHECK_EQ(local_address_is((struct sockaddr *)&v4), cases[i].local);
            judged++;
        } else if (inet_pton(AF_INET6, cases[i].host, &v6.sin6_addr) == 1) {
            CHECK_EQ(local_address_is((struct sockaddr *)&v6), cases[i].local);
            judged++;
        }
    }
    check_case(-1);
    CHECK(judged >= 20);
    struct sockaddr_un path = { .sun_family = AF_UNIX };
    CHECK(local_address_is((struct sockaddr *)&path));
}
