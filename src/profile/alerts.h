/*
 * alerts: messages about what is no state of a profile: a drain that stays blocked, and a
 * MaintenanceRequest that was rejected or has expired.
 *
 * All is sent by the notify instances that the configuration names for it, and tried again for a
 * day. Only the leader tells: it alone drains nodes and decides requests.
 */
#pragma once

struct alerts;
struct controller;
struct core_request_news;

struct alerts *alerts_new(struct controller *c);
void alerts_free(struct alerts *a);
/* Leadership has ended: the next leader tells. */
void alerts_drop_all(struct alerts *a);
/* A drain is blocked, or not any more, or another configuration is in force. */
void alerts_on_drain(struct alerts *a);
void alerts_on_request(struct alerts *a, const struct core_request_news *news);
