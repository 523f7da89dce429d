/*
 * fd_watch: calls back from the loop whenever a descriptor can be read.
 */
#pragma once

#include "port/loop.h"

struct fd_watch;

struct fd_watch *fd_watch_new(struct loop *loop, int fd, void (*fn)(void *ctx), void *ctx);
void fd_watch_free(struct fd_watch *w); /* before the descriptor is closed; accepts NULL */
