/*
 * alerts: messages about what is no state of a profile: a drain that stays blocked, and a
 * MaintenanceRequest that was rejected or has expired.
 *
 * All is sent by the notify instances that the configuration names for it, and tried again for a
 * day. Only the leader tells: it alone drains nodes and decides requests. What is told and what is
 * left to send stands in its Lease.
 */
#pragma once

#include "base/arena.h"

struct alerts;
struct node_report;
struct controller;
struct core_request_news;

struct alerts *alerts_new(struct controller *c);
void alerts_free(struct alerts *a);
/* Leadership has begun: what the last leader has left in the Lease is taken over. */
void alerts_inherit(struct alerts *a);
/* How many could not be sent yet; those about a node are added to its report, in `out`. */
uint32_t alerts_unsent(const struct alerts *a);
void alerts_explain(const struct alerts *a, struct str node, struct arena *out,
                    struct node_report *report);
/* Leadership has ended: the next leader tells. */
void alerts_drop_all(struct alerts *a);
/* A drain is blocked, or not any more, or another configuration is in force. */
void alerts_on_drain(struct alerts *a);
void alerts_on_request(struct alerts *a, const struct core_request_news *news);
