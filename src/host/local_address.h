/*
 * local_address: whether an address leads to this machine or to its own link.
 *
 * Loopback, unspecified and link-local addresses reach services that trust whoever comes from
 * there: a sidecar, a node's agents, a cloud's metadata server. A server that a stranger names must
 * not be one of them. What a name resolves to is known only when the connection is made, so
 * curl_endpoint asks again with the very address that libcurl connects to.
 */
#pragma once

#include <sys/socket.h>

#include "base/str.h"

/* 0.0.0.0/8, 127.0.0.0/8, 169.254.0.0/16, ::, ::1, fe80::/10, and IPv4 addresses of these in IPv6
 * form (mapped, compatible). What is neither IPv4 nor IPv6, a UNIX socket, is local. */
bool local_address_is(const struct sockaddr *address);

/* The host of a URL, without brackets: such an address in any form that libcurl takes ("127.1",
 * "0x7f000001"), "localhost" or a name below it. Other names are not looked up. */
bool local_address_host(struct str host);
