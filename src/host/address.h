/*
 * address: where to listen, as people and Go write it: "host:port".
 */
#pragma once

#include <sys/socket.h>

#include "base/err.h"

struct address {
    struct sockaddr_storage storage;
    socklen_t length;
    bool any; /* no host was named: all interfaces, IPv4 and IPv6 */
};

/* The host is an IPv4 address, an IPv6 one in brackets, "localhost" or nothing. Names are not
 * looked up: listening on what a resolver says today is a surprise tomorrow. */
NODISCARD
int address_parse(struct str text, struct address *ret, struct err *err);
