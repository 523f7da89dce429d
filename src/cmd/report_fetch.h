/*
 * node_report_fetch: gets a document from a running controller or bridge and prints it, once or
 * again and again.
 *
 * With --address it is asked itself. Otherwise its Lease tells which pod leads, and the API server
 * passes the question on to that pod, so nothing but a kubeconfig is needed. Where there are
 * shards, they are asked in turn until one answers for what it looks after itself.
 */
#pragma once

#include "cmd/command.h"
#include "cmd/leader_find.h"
#include "profile/node_report.h"

#define NODE_REPORT_FETCH_WATCH_EVERY SECONDS(2) /* --watch: as fast as people read */

struct node_report_fetch_flags {
    struct str output; /* text, wide or json */
    bool watch;
    struct str address;
    struct str kubeconfig;
    struct str kubecontext;
    struct str ns;   /* of the Lease and its pods; empty = wherever the Lease is */
    uint32_t port;   /* of the controller's pod */
    usec_t time_max; /* for one answer */
};

#define NODE_REPORT_FETCH_OPTION_COUNT 8
extern const struct option node_report_fetch_options[NODE_REPORT_FETCH_OPTION_COUNT];

/* Writes the document as text. */
typedef int (*node_report_fetch_print)(struct str json, enum report_format form, struct buf *out,
                                       struct err *err);

struct node_report_query {
    enum leader_kind leader_kind;
    struct str path; /* below the address, percent-encoded */
    node_report_fetch_print print;
    /* Whether another shard may know more; NULL = never. */
    bool (*is_elsewhere)(struct str json);
};

/* Answers the exit code. */
int node_report_fetch_run(const struct command_call *call, const struct node_report_query *query);
