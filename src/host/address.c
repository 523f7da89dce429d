#include "host/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

static int address_bad(struct str text, struct err *err)
{
    return err_set(err, ERR_INVALID,
                   "address '" STR_FMT "': want ':8080', '127.0.0.1:8080' or '[::1]:8080'",
                   STR_ARG(text));
}

static bool address_host(struct str host, uint16_t port, struct address *ret)
{
    char name[64];
    if (host.n >= sizeof(name)) {
        return false;
    }
    memcpy(name, host.p, host.n);
    name[host.n] = '\0';
    struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
    if (inet_pton(AF_INET, name, &v4.sin_addr) == 1) {
        memcpy(&ret->storage, &v4, sizeof(v4));
        ret->length = sizeof(v4);
        return true;
    }
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
    if (host.n > 2 && name[0] == '[' && name[host.n - 1] == ']') {
        name[host.n - 1] = '\0';
        if (inet_pton(AF_INET6, name + 1, &v6.sin6_addr) == 1) {
            memcpy(&ret->storage, &v6, sizeof(v6));
            ret->length = sizeof(v6);
            return true;
        }
    }
    return false;
}

int address_parse(struct str text, struct address *ret, struct err *err)
{
    size_t colon = str_rfind_char(text, ':');
    uint32_t port;
    if (colon == SIZE_MAX || !str_to_u32(str_sub(text, colon + 1, text.n - colon - 1), &port) ||
        port > 65535) {
        return address_bad(text, err);
    }
    struct str host = str_sub(text, 0, colon);
    struct address a = { .any = host.n == 0 };
    if (host.n == 0) {
        host = STR("[::]");
    } else if (str_eq(host, STR("localhost"))) {
        host = STR("127.0.0.1");
    }
    if (!address_host(host, (uint16_t)port, &a)) {
        return address_bad(text, err);
    }
    *ret = a;
    return 0;
}
