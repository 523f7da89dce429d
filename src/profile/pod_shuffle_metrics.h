/*
 * pod_shuffle_metrics: two metrics about the workloads whose pods have to move for maintenance.
 *
 * When a profile has taken a node into maintenance, the pods that are on it are counted by their
 * owners; when a node needs maintenance, the same series are made with 0, so that a rate over them
 * sees the first count too. Owners are DaemonSets, StatefulSets, Deployments (through their
 * ReplicaSets) and ReplicaSets without an owner; pods of others are not counted.
 *
 * The zeros are not urgent, but help only if they are scraped before the count. They are made at an
 * even pace, and a node that is counted before its turn needs none.
 *
 * No decision waits for these metrics: a few requests are in flight at a time, and failures are
 * logged and forgotten. Of one node either all owners are counted or none.
 */
#pragma once

#include "base/log.h"
#include "kube/client.h"
#include "profile/controller_metrics.h"

#define SHUFFLE_IN_FLIGHT_MAX 2u /* requests at a time: metrics must not crowd out patches */
#define SHUFFLE_QUEUE_MAX 10000u /* nodes that wait, of either sort: twice the largest fleet */
#define SHUFFLE_ZERO_EVERY MSECONDS(100) /* 5,000 nodes at once: 8 minutes */
#define SHUFFLE_OWNERS_MAX 1000u /* of the pods of one node; kubelets run 110 pods, some 500 */
#define SHUFFLE_OWNER_CACHE_MAX 10000u      /* owners that are remembered between nodes */
#define SHUFFLE_OWNER_CACHE_TTL SECONDS(60) /* their replicas change */
#define SHUFFLE_TRIES_MAX 3u
#define SHUFFLE_LOG_EVERY SECONDS(60) /* one line stands for many nodes that fail alike */

struct pod_shuffle;

/* `log` may be NULL. Without metrics there is nothing to do, and nothing is asked for. */
struct pod_shuffle *shuffle_new(struct client *client, struct controller_metrics *metrics,
                                struct log *log);
void shuffle_free(struct pod_shuffle *s); /* accepts NULL */

/* The profile has taken the node into maintenance. */
void shuffle_count(struct pod_shuffle *s, struct str node, struct str profile);
/* The node needs maintenance: its pods may have to move soon. */
void shuffle_make_zeros(struct pod_shuffle *s, struct str node, struct str profile);
/* Another leads: what has not been counted is dropped. */
void shuffle_drop_all(struct pod_shuffle *s);
