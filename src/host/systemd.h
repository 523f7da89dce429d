/*
 * systemd: the door to the service manager (port/units.h), on systemd's private socket, by sd-bus.
 *
 * The socket is root's alone and needs no dbus-daemon. The connection is made with the first
 * question and again after it was lost. Nothing waits: a start is over when its job is.
 */
#pragma once

#include "port/loop.h"
#include "port/units.h"

#define SYSTEMD_SOCKET "/run/systemd/private"

struct systemd;

/* `socket` is a path. */
struct systemd *systemd_new(struct loop *loop, struct str socket);
/* Whatever is under way is forgotten. Accepts NULL. */
void systemd_free(struct systemd *s);

struct units systemd_units(struct systemd *s);
