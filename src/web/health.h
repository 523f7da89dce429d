/*
 * health: /healthz says that the process answers, /readyz that it can do its work.
 *
 * As the original has it: "ok", with ?verbose a line for each check, single checks below each path.
 * Unlike the original, readiness is honest: it fails while nodes are not known or the API server is
 * not reached.
 */
#pragma once

#include "port/inbound.h"

struct health {
    void *ctx;
    /* NULL = always ready. `*ret_why` lives until the next call: why it is not, or what there is to
     * say although it is, which ?verbose shows. */
    bool (*ready)(void *ctx, struct str *ret_why);
};

/* An inbound_handler; its context is a struct health. */
void health_handle(void *ctx, struct inbound_exchange *x, const struct inbound_request *req);
