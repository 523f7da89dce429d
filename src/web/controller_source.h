/*
 * controller_source: lets web and health read a controller (struct web_source, struct health).
 */
#pragma once

#include "base/arena.h"
#include "web/health.h"
#include "web/web.h"

struct controller;
struct integrations;
struct requests;
struct operations;

struct controller_source {
    struct controller *controller;           /* borrowed; NULL = none runs */
    struct requests *const *requests;        /* borrowed: where requests are once they are served */
    struct operations *const *operations;    /* borrowed: where NodeMaintenances are carried out;
                                              * NULL = nowhere */
    const struct integrations *integrations; /* borrowed; NULL = there are none */
    struct str title;                        /* borrowed; shown as the cluster's name */
    struct str identity;                     /* borrowed */
    struct web_source web;                   /* for web_new */
    struct health health;                    /* for health_handle */
    struct arena tmp;                        /* of one node's labels */
    struct arena names;                      /* of the profiles that are configured */
    struct arena activities;                 /* of integrations, as they were last told */
    struct arena pause;                      /* of what readiness says last */
};

void controller_source_init(struct controller_source *s, struct controller *controller);
void controller_source_done(struct controller_source *s);
