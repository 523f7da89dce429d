/*
 * graph: who comes before whom. Pure.
 *
 * An edge goes from the one that comes first. Edges are those that are written (`requires`,
 * `notifies`) and those that follow from what resources use (the file's folder, its owner). The
 * order is that of the document wherever edges leave a choice, so that one document always gives
 * one order.
 */
#pragma once

#include "agent/resource.h"

struct graph_edges {
    const uint32_t *items; /* vertices */
    uint32_t n;
};

struct graph_vertex {
    struct graph_edges requires; /* those that must be right before */
    struct graph_edges notifies; /* those that are refreshed */
    struct graph_edges notified; /* those that refresh it */
};

struct graph {
    const struct resource_list *resources;
    const struct graph_vertex *vertices; /* as many as resources */
    const uint32_t *order;               /* of work; each vertex once */
};

/* A name that nobody has makes a problem of its resource. What cannot be ordered, or two resources
 * for one thing, is an error of the whole; the message names all members of the cycle. */
NODISCARD
int graph_build(struct resource_list *resources, struct arena *out, struct graph *ret,
                struct err *err);
