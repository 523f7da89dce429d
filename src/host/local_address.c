#include "host/local_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/defs.h"

static bool local_v4(const unsigned char *bytes)
{
    return bytes[0] == 0 || bytes[0] == 127 || (bytes[0] == 169 && bytes[1] == 254);
}

static bool local_v6(const unsigned char *bytes)
{
    static const unsigned char zero[12] = { 0 };
    static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };
    if (memcmp(bytes, zero, sizeof(zero)) == 0 || memcmp(bytes, mapped, sizeof(mapped)) == 0) {
        return local_v4(bytes + 12); /* "::" and "::1" are 0.0.0.0 and 0.0.0.1 here */
    }
    return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

bool local_address_is(const struct sockaddr *address)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    switch (address->sa_family) {
    case AF_INET:
        memcpy(&v4, address, sizeof(v4));
        return local_v4((const unsigned char *)&v4.sin_addr);
    case AF_INET6:
        memcpy(&v6, address, sizeof(v6));
        return local_v6((const unsigned char *)&v6.sin6_addr);
    default:
        return true;
    }
}

bool local_address_host(struct str host)
{
    char name[64]; /* longer than any address */
    unsigned char v6[16];
    struct in_addr v4;
    struct str zone;
    (void)str_cut(host, STR("%"), &host, &zone); /* "fe80::1%eth0"; without one it is all host */
    (void)str_cut_suffix(host, STR("."), &host); /* "localhost." is the same name */
    if (str_eq_fold(host, STR("localhost")) ||
        (host.n > 10 && str_eq_fold(str_sub(host, host.n - 10, 10), STR(".localhost")))) {
        return true;
    }
    if (host.n == 0 || host.n >= sizeof(name)) {
        return false;
    }
    memcpy(name, host.p, host.n);
    name[host.n] = '\0';
    if (inet_pton(AF_INET6, name, v6) == 1) {
        return local_v6(v6);
    }
    return inet_aton(name, &v4) != 0 && local_v4((const unsigned char *)&v4);
}
