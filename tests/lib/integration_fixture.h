/*
 * integration_fixture: the integrations as the only part of a core, on the sandbox's API server and
 * in virtual time, with an inbox that plays every server outside.
 */
#pragma once

#include "integration/integration.h"
#include "sandbox/apiserver/apiserver.h"
#include "sandbox/sim/outbound.h"
#include "sandbox/sim/virtual_loop.h"

struct integration_fixture {
    struct arena memory;
    struct virtual_loop *time;
    struct apiserver *server;
    struct api *api;
    struct inbox inbox;
    struct outbound *outbound;
    struct core *core;
    struct metrics metrics;
    struct integrations all;
    struct files files;
    struct str file; /* what every file holds; .p NULL: there is none */
    uint32_t reads;  /* of files */
};

/* The provider of that name runs, and has no configuration yet. */
void integration_fixture_init(struct integration_fixture *f, const char *provider);
void integration_fixture_done(struct integration_fixture *f);
/* Like a crash and a new process. */
void integration_fixture_restart(struct integration_fixture *f);
/* The CRDs are installed, and so many nodes may be away. */
void integration_fixture_limit(struct integration_fixture *f, uint32_t count);
void integration_fixture_set_limit(struct integration_fixture *f, uint32_t count);
/* Who has the one place that is taken under it; STR_NONE: nobody. */
struct str integration_fixture_reservation(struct integration_fixture *f);
struct integration *integration_fixture_get(struct integration_fixture *f);
/* Answers as integration_configure. */
int integration_fixture_configure(struct integration_fixture *f, const char *yaml);
void integration_fixture_run(struct integration_fixture *f, usec_t span);
/* A request to the API server that must succeed; its answer. */
const struct jval *integration_fixture_ask(struct integration_fixture *f, const char *method,
                                           const char *path, const char *body);
/* The value at a path of a Node, such as "spec.unschedulable"; NULL: none. */
const struct jval *integration_fixture_node(struct integration_fixture *f, const char *name,
                                            const char *path);
/* A label of a Node; STR_NONE: none. */
struct str integration_fixture_label(struct integration_fixture *f, const char *node,
                                     struct str key);
