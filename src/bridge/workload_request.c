#include "bridge/workload_request.h"

struct str workload_request_node(const struct maintenance_request *m)
{
    return str_eq(m->type_text, STR("node")) ? m->target : STR_NONE;
}

bool workload_request_is_open(const struct maintenance_request *m)
{
    /* The watch selects those of our client; what comes is looked at all the same. */
    return str_eq(m->client, STR(WORKLOAD_REQUEST_CLIENT)) && m->machine_request.n > 0 &&
           workload_request_node(m).n > 0 && m->state != MR_STATE_COMPLETED;
}

static bool workload_request_same(const void *left, const void *right)
{
    const struct maintenance_request *a = left;
    const struct maintenance_request *b = right;
    return str_eq(a->uid, b->uid) && str_eq(a->client, b->client) &&
           str_eq(a->type_text, b->type_text) && str_eq(a->target, b->target) &&
           str_eq(a->machine_request, b->machine_request) &&
           mrequest_state_for_actor(a->state) == mrequest_state_for_actor(b->state);
}

const struct store_kind workload_request_kind = {
    .name = "maintenancerequest",
    .project = mrequest_project,
    .same = workload_request_same,
};
