/*
 * fake_dialer: a dialer for tests that play the cluster by hand: one door at a time, and it is a
 * fake_api.
 */
#pragma once

#include "port/dialer.h"
#include "tests/lib/fake_api.h"

struct fake_dialer {
    struct dialer dialer; /* first */
    struct fake_api api;  /* while it is open */
    bool open;
    uint32_t dial_count;
};

void fake_dialer_init(struct fake_dialer *d);
