/*
 * shuffle: counts the pods that maintenance moves, by the workload that owns them.
 *
 * When a node has come into maintenance and its enter chain is done, the pods that are then on it
 * are listed, their owners looked up, and two counters grow: one by the pods, one by the share of
 * the workload's replicas that they are. Nothing waits for it, and what cannot be looked up is left
 * out alone: these are figures for people. A workload without a ready replica counts as one with
 * one, since a counter that is infinite is of no use.
 */
#pragma once

#include "base/metric.h"
#include "kube/client.h"

#define SHUFFLES_AT_ONCE 4u     /* nodes that are looked at; a roll must not wait for its figures */
#define SHUFFLES_MAX 256u       /* and that wait for it; more are not counted */
#define SHUFFLE_OWNERS_MAX 512u /* on one node; kubelets run 110 pods, some people's 500 */

struct shuffles;

/* Both are borrowed and outlive it. */
struct shuffles *shuffles_new(struct client *client, struct metrics *metrics);
/* What is under way is not counted. Accepts NULL. */
void shuffles_free(struct shuffles *s);

/* The node's pods are counted for the profile; answers false when too many wait. */
bool shuffles_count(struct shuffles *s, struct str node, struct str profile);
