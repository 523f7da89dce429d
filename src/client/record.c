#include "client/record.h"

#include "format/json_writer.h"

static const struct str state_names[RECORD_STATES] = {
    [RECORD_PENDING] = STR_INIT("Pending"),
    [RECORD_APPROVED] = STR_INIT("Approved"),
    [RECORD_IN_PROGRESS] = STR_INIT("InProgress"),
    [RECORD_COMPLETED] = STR_INIT("Completed"),
};

struct str record_state_name(enum record_state state)
{
    ASSERT((size_t)state < ARRAY_LEN(state_names));
    return state_names[state];
}

struct str record_target_text(const struct record_target *target, struct arena *out)
{
    if (target->namespace.n > 0) {
        return arena_printf(out, STR_FMT " " STR_FMT "/" STR_FMT, STR_ARG(target->type),
                            STR_ARG(target->namespace), STR_ARG(target->name));
    }
    return arena_printf(out, STR_FMT " " STR_FMT, STR_ARG(target->type), STR_ARG(target->name));
}

int record_read(const struct jval *object, struct arena *out, struct record *ret, struct err *err)
{
    const struct jval *meta = jval_get(object, STR("metadata"));
    const struct jval *spec = jval_get(object, STR("spec"));
    const struct jval *status = jval_get(object, STR("status"));
    const struct jval *annotations = jval_get(meta, STR("annotations"));
    struct record r = {
        .name = arena_str(out, jval_str(jval_get(meta, STR("name")))),
        .uid = arena_str(out, jval_str(jval_get(meta, STR("uid")))),
        .version = arena_str(out, jval_str(jval_get(meta, STR("resourceVersion")))),
        .client = arena_str(out, jval_str(jval_get(jval_get(meta, STR("labels")),
                                                   STR(RECORD_CLIENT_LABEL)))),
        .target = {
            .type = arena_str(out, jval_str(jval_get(spec, STR("type")))),
            .namespace = arena_str(out, jval_str(jval_get(spec, STR("namespace")))),
            .name = arena_str(out, jval_str(jval_get(spec, STR("name")))),
        },
        .run = arena_str(out, jval_str(jval_get(annotations, STR(RECORD_RUN_ANNOTATION)))),
        .phase = arena_str(out, jval_str(jval_get(status, STR("phase")))),
        .reason = arena_str(out, jval_str(jval_get(status, STR("reason")))),
        .message = arena_str(out, jval_str(jval_get(status, STR("message")))),
    };
    if (r.name.n == 0 || r.version.n == 0) {
        return err_set(err, ERR_PROTO, "a MaintenanceRequest without name or resourceVersion");
    }
    (void)jval_i64(jval_get(status, STR("queuePosition")), &r.position); /* 0 = unknown */
    struct str state = jval_str(jval_get(spec, STR("state")));
    for (size_t i = 0; i < ARRAY_LEN(state_names); i++) {
        if (str_eq(state, state_names[i])) {
            r.state = (enum record_state)i;
        }
    }
    *ret = r;
    return 0;
}

struct record record_copy(const struct record *r, struct arena *out)
{
    struct record copy = *r;
    struct str *texts[] = {
        &copy.name,        &copy.uid,         &copy.version,
        &copy.client,      &copy.target.type, &copy.target.namespace,
        &copy.target.name, &copy.run,         &copy.phase,
        &copy.reason,      &copy.message,
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        *texts[i] = arena_str(out, *texts[i]);
    }
    return copy;
}

bool record_is_for(const struct record *r, const struct record_target *target)
{
    return str_eq_fold(r->target.name, target->name) && str_eq_fold(r->target.type, target->type) &&
           str_eq(r->target.namespace, target->namespace);
}

void record_print_new(struct str name, struct str client, const struct record_ask *ask,
                      struct buf *out)
{
    struct json_writer w = json_writer_on(out);
    jw_obj(&w);
    jw_pair(&w, "apiVersion", STR("repairman.k8s.io/v1"));
    jw_pair(&w, "kind", STR("MaintenanceRequest"));
    jw_key(&w, STR("metadata"));
    jw_obj(&w);
    jw_pair(&w, "name", name);
    jw_key(&w, STR("labels"));
    jw_obj(&w);
    jw_pair(&w, RECORD_CLIENT_LABEL, client);
    jw_obj_end(&w);
    jw_obj_end(&w);
    jw_key(&w, STR("spec"));
    jw_obj(&w);
    jw_pair(&w, "name", ask->target.name);
    jw_pair_some(&w, "namespace", ask->target.namespace);
    jw_pair(&w, "type", ask->target.type);
    jw_pair(&w, "state", record_state_name(RECORD_PENDING));
    if (ask->priority != 0) {
        jw_pair_i64(&w, "priority", ask->priority);
    }
    jw_pair_some(&w, "reason", ask->reason);
    if (ask->unprepared) {
        jw_pair(&w, "preparation", STR("None"));
    }
    jw_obj_end(&w);
    jw_obj_end(&w);
}

void record_print_change(const struct record *r, const struct record_change *change,
                         struct buf *out)
{
    struct json_writer w = json_writer_on(out);
    jw_obj(&w);
    jw_key(&w, STR("metadata"));
    jw_obj(&w);
    jw_pair(&w, "resourceVersion", r->version);
    jw_pair(&w, "uid", r->uid);
    if (change->run.n > 0 || change->exit_code.n > 0) {
        jw_key(&w, STR("annotations"));
        jw_obj(&w);
        jw_pair_some(&w, RECORD_RUN_ANNOTATION, change->run);
        jw_pair_some(&w, RECORD_EXIT_ANNOTATION, change->exit_code);
        jw_obj_end(&w);
    }
    jw_obj_end(&w);
    jw_key(&w, STR("spec"));
    jw_obj(&w);
    jw_pair(&w, "state", record_state_name(change->state));
    jw_obj_end(&w);
    jw_obj_end(&w);
}
