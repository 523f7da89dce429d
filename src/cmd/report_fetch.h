/*
 * report_fetch: gets a report from a running controller or bridge and prints it, once or, with
 * --watch, whenever it has changed.
 *
 * The server renders the text (format=text or format=wide, as wide as the terminal is), so nothing
 * here depends on the form of a report; `-o json` prints the server's JSON.
 *
 * With --address the request goes to that server. Otherwise the Lease names the pod that leads, and
 * the API server passes the request on to that pod, so nothing but a kubeconfig is needed. Where a
 * bridge has shards, they are asked in turn until one looks after the Machine (shard=own).
 *
 * A server with --auth=cluster wants a token. With --address it is that of --token-file, or what
 * the kubeconfig has. The API server passes no credentials of its own requests on to pods, so there
 * it is that of --token-file alone, in a header of its own: nobody's credentials for the cluster
 * reach a pod without being asked for. Whether a pod speaks TLS is found by trying.
 *
 * A cluster on this machine, such as the sandbox, may have its controller here as well, in no pod.
 * So if no pod can be asked and the API server's address is this machine's, the port is tried here;
 * the controller there must be of the same cluster.
 */
#pragma once

#include "cmd/command.h"
#include "cmd/leader_find.h"
#include "cmd/report_output.h"

#define REPORT_FETCH_WATCH_EVERY SECONDS(2) /* --watch: as fast as people read */

struct report_fetch_flags {
    struct str output; /* text, wide, json, yaml or name */
    bool watch;
    struct str address;
    struct str token_file;
    struct str ca_file;
    struct str tls_server_name;
    struct str kubeconfig;
    struct str kubecontext;
    struct str ns;   /* of the Lease and its pods; empty = wherever the Lease is */
    uint32_t port;   /* of the controller's pod */
    usec_t time_max; /* for one answer */
    uint32_t verbosity;
};

#define REPORT_FETCH_OPTION_COUNT 12
extern const struct option report_fetch_options[REPORT_FETCH_OPTION_COUNT];

struct report_query {
    enum leader_kind leader_kind;
    enum report_about about;
    struct str path; /* below the address, percent-encoded */
};

/* Answers the exit code. */
int report_fetch_run(const struct command_call *call, const struct report_query *query);
