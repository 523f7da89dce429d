/*
 * assert: something that must be so and that the agent does not change: a resource of another type
 * that is only looked at, or a script. What is not so is a failure, by which those that require it
 * are blocked.
 */
#include "agent/type/tool.h"
#include "agent/type/type.h"
#include "base/buf.h"
#include "format/json_writer.h"

static const struct field fields[] = {
    { "file", FIELD_OBJECT, .help = "fields of a `file` that is to be as they say" },
    { "sysctl", FIELD_OBJECT,
      .help = "fields of a `sysctl`; only the running kernel is looked at" },
    { "kernelModule", FIELD_OBJECT,
      .help = "fields of a `kernelModule`; only the running kernel is looked at" },
    { "package", FIELD_OBJECT, .help = "fields of a `package`" },
    { "service", FIELD_OBJECT, .help = "fields of a `service`" },
    { "exec", FIELD_TEXT, .help = "a script for /bin/sh that must exit with 0" },
    { "message", FIELD_TEXT, .help = "what to say when it is not so" },
};

struct conditions {
    struct resource *items; /* only their check is called */
    uint32_t n;
};

/* The fields as a resource of their own. */
static struct str resource_text(const struct resource *outer, const char *type,
                                const struct jval *object, struct arena *out)
{
    CLEANUP(buf_done)
    struct buf json = { 0 };
    struct json_writer w = json_writer_on(&json);
    jw_obj(&w);
    jw_pair(&w, "name", outer->name);
    jw_pair(&w, "type", str_from(type));
    JVAL_EACH (object, v) {
        jw_key(&w, jval_key(v));
        jw_val(&w, v);
    }
    if (field_find(&resource_type_find(str_from(type))->fields, STR("persist")) != NULL &&
        jval_get(object, STR("persist")) == NULL) {
        jw_pair_bool(&w, "persist", false);
    }
    jw_obj_end(&w);
    return arena_str(out, buf_str(&json));
}

static int read_condition(struct resource_prepare *p, const struct field *field, struct str json,
                          struct resource *ret, struct err *err)
{
    const struct jval *object;
    int r = json_parse(json, 0, p->out, &object, err);
    r = r < 0 ? r
              : resource_read_json(resource_text(p->resource, field->name, object, p->out), p->out,
                                   ret, err);
    if (r < 0) {
        return err_wrap(err, "field '%s'", field->name);
    }
    for (uint32_t i = 0; i < ret->uses_n; i++) {
        resource_uses_all(p, ret->uses[i]);
    }
    if (ret->provides.n > 0) {
        resource_uses_all(p, ret->provides);
    }
    return 0;
}

static int prepare(struct resource_prepare *p, struct err *err)
{
    struct conditions *c = ARENA_NEW(p->out, struct conditions);
    c->items = ARENA_ARRAY(p->out, struct resource, ARRAY_LEN(fields));
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        const struct field_value *value = resource_value(p->resource, fields[i].name);
        if (fields[i].kind != FIELD_OBJECT || !value->given) {
            continue;
        }
        int r = read_condition(p, &fields[i], value->text, &c->items[c->n], err);
        if (r < 0) {
            return r;
        }
        c->n++;
    }
    if (c->n == 0 && !resource_value(p->resource, "exec")->given) {
        return err_set(err, ERR_INVALID,
                       "want at least one of 'file', 'sysctl', 'kernelModule', 'package', "
                       "'service' and 'exec'");
    }
    p->resource->prepared = c;
    p->resource->id = arena_printf(p->out, "assert:" STR_FMT, STR_ARG(p->resource->name));
    return 0;
}

static int fail(const struct resource_call *call, struct str why, struct err *err)
{
    struct str message = resource_value(call->resource, "message")->text;
    return err_set(err, ERR_CONFLICT, STR_FMT "%s" STR_FMT, STR_ARG(message),
                   message.n > 0 ? ": " : "", STR_ARG(why));
}

/* From step to step: which condition is looked at, and when that began. */
struct progress {
    uint32_t index;
    uint32_t first_step;
    void *memory; /* of the condition's check */
};

static int judge(const struct resource_call *call, const struct resource_call *inner,
                 struct err *err)
{
    const struct difference *d = &inner->differences[0];
    struct str id = inner->resource->id;
    if (inner->difference_n == 0) {
        return 0;
    }
    return fail(call,
                call->resource->meta.sensitive
                    ? arena_printf(call->tmp, STR_FMT ": %s differs", STR_ARG(id), d->property)
                    : arena_printf(call->tmp, STR_FMT ": %s is '" STR_FMT "', want '" STR_FMT "'",
                                   STR_ARG(id), d->property, STR_ARG(d->was), STR_ARG(d->want)),
                err);
}

/* Calls the condition's own check, which may ask for something and be called again. */
static int check_one(struct resource_call *call, const struct resource *r, struct progress *g,
                     struct err *err)
{
    struct resource_call inner = { .resource = r,
                                   .root = call->root,
                                   .tmp = call->tmp,
                                   .memory = g->memory,
                                   .step = call->step - g->first_step,
                                   .result = call->result,
                                   .answer = call->answer };
    int result = r->type->check(&inner, err);
    g->memory = inner.memory;
    call->command = inner.command;
    call->ask = inner.ask;
    return result != 0 ? result : judge(call, &inner, err);
}

static int ask_script(struct resource_call *call, const void *ctx, struct tool *ret,
                      struct err *err)
{
    (void)ctx; /* the resource says it all */
    (void)err;
    tool_add(ret, STR("/bin/sh"));
    tool_add(ret, STR("-s"));
    ret->input = resource_value(call->resource, "exec")->text;
    return 0;
}

static int check_script(struct resource_call *call, const struct progress *g, struct err *err)
{
    struct err why = { 0 };
    struct resource_call inner = *call;
    inner.step = call->step - g->first_step;
    int r = tool_run_all(&inner, ask_script, NULL, &why);
    call->command = inner.command;
    return r < 0 ? fail(call, str_from(why.msg), err) : r;
}

static int check(struct resource_call *call, struct err *err)
{
    const struct conditions *c = call->resource->prepared;
    struct progress *g = call->memory;
    if (g == NULL) {
        g = ARENA_NEW(call->tmp, struct progress);
        call->memory = g;
    }
    for (; g->index < c->n; g->index++) {
        int r = check_one(call, &c->items[g->index], g, err);
        if (r != 0) {
            return r;
        }
        g->first_step = call->step;
        g->memory = NULL;
    }
    return resource_value(call->resource, "exec")->given ? check_script(call, g, err) : 0;
}

static void watch_more(const struct resource *r, watch_add_fn add, void *ctx)
{
    const struct conditions *c = r->prepared;
    for (uint32_t i = 0; i < c->n; i++) {
        resource_watch(&c->items[i], add, ctx);
    }
    if (resource_value(r, "exec")->given) {
        add(ctx, WATCH_CLOCK, STR_NONE);
    }
}

const struct resource_type resource_type_assert = {
    .name = "assert",
    .fields = FIELD_TABLE(fields),
    .help = "something that must be so and is never changed; if it is not, the resource fails and "
            "those that require it are blocked",
    .example = "sysctl: {key: vm.overcommit_memory, value: 1}, message: the database needs it",
    .prepare = prepare,
    .check = check,
    .save = resource_save_nothing,
    .restore = resource_restore_nothing,
    .watch_more = watch_more,
};
