#include "sandbox/apiserver/status.h"

#include <stdarg.h>

struct status *status_new(struct arena *a, int code, const char *reason, struct str message)
{
    struct status *s = ARENA_NEW(a, struct status);
    s->arena = a;
    s->code = code;
    s->reason = str_from(reason);
    s->message = message;
    return s;
}

struct status *status_bad_request(struct arena *a, const char *fmt, ...)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    va_list args;
    va_start(args, fmt);
    char line[2048];
    int n = vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    buf_add(&text, (struct str){ .p = line, .n = MIN((size_t)MAX(n, 0), sizeof(line) - 1) });
    return status_new(a, 400, "BadRequest", arena_str(a, buf_str(&text)));
}

struct status *status_internal(struct arena *a, struct str message)
{
    return status_new(a, 500, "", message);
}

static struct status *status_named(struct arena *a, int code, const char *reason,
                                   const struct kind *kind, struct str name, struct str message)
{
    struct status *s = status_new(a, code, reason, message);
    s->has_details = true;
    s->name = name;
    s->group = kind->group;
    s->kind = kind->plural;
    return s;
}

struct status *status_not_found(struct arena *a, const struct kind *kind, struct str name)
{
    return status_named(a, 404, "NotFound", kind, name,
                        arena_printf(a, STR_FMT " \"" STR_FMT "\" not found",
                                     STR_ARG(kind->resource), STR_ARG(name)));
}

struct status *status_already_exists(struct arena *a, const struct kind *kind, struct str name)
{
    return status_named(a, 409, "AlreadyExists", kind, name,
                        arena_printf(a, STR_FMT " \"" STR_FMT "\" already exists",
                                     STR_ARG(kind->resource), STR_ARG(name)));
}

struct status *status_conflict(struct arena *a, const struct kind *kind, struct str name,
                               struct str why)
{
    return status_named(
        a, 409, "Conflict", kind, name,
        arena_printf(a, "Operation cannot be fulfilled on " STR_FMT " \"" STR_FMT "\": " STR_FMT,
                     STR_ARG(kind->resource), STR_ARG(name), STR_ARG(why)));
}

struct status *status_modified(struct arena *a, const struct kind *kind, struct str name)
{
    return status_conflict(a, kind, name,
                           STR("the object has been modified; please apply your changes to the "
                               "latest version and try again"));
}

struct status *status_precondition(struct arena *a, const struct kind *kind, struct str name,
                                   struct str why)
{
    struct status *s = status_conflict(a, kind, name, why);
    s->message =
        arena_printf(a, "Operation cannot be fulfilled on " STR_FMT " \"" STR_FMT "\": " STR_FMT,
                     STR_ARG(kind->group_kind), STR_ARG(name), STR_ARG(why));
    s->kind = kind->kind;
    return s;
}

struct status *status_forbidden(struct arena *a, const struct kind *kind, struct str name,
                                struct str why)
{
    struct str subject = name.n == 0 ? kind->resource
                                     : arena_printf(a, STR_FMT " \"" STR_FMT "\"",
                                                    STR_ARG(kind->resource), STR_ARG(name));
    return status_named(
        a, 403, "Forbidden", kind, name,
        arena_printf(a, STR_FMT " is forbidden: " STR_FMT, STR_ARG(subject), STR_ARG(why)));
}

struct status *status_generic(struct arena *a, int code, const char *reason, struct str message)
{
    struct status *s = status_new(a, code, reason, message);
    s->has_details = true;
    return s;
}

struct status *status_expired(struct arena *a, struct str message)
{
    return status_new(a, 410, "Expired", message);
}

void cause_add(struct status **list, struct arena *a, const char *reason, struct str field,
               struct str message)
{
    if (*list == NULL) {
        *list = status_new(a, 422, "Invalid", STR(""));
        (*list)->has_details = true;
    }
    struct status_cause *cause = ARENA_NEW(a, struct status_cause);
    cause->reason = str_from(reason);
    cause->field = field;
    cause->message = message;
    if ((*list)->last_cause == NULL) {
        (*list)->first_cause = cause;
    } else {
        (*list)->last_cause->next = cause;
    }
    (*list)->last_cause = cause;
}

static bool status_cause_repeated(const struct status *list, const struct status_cause *until)
{
    for (const struct status_cause *c = list->first_cause; c != until; c = c->next) {
        if (str_eq(c->field, until->field) && str_eq(c->message, until->message)) {
            return true;
        }
    }
    return false;
}

struct status *status_invalid(struct status *list, const struct kind *kind, struct str name)
{
    if (list == NULL) {
        return NULL;
    }
    CLEANUP(buf_done)
    struct buf text = { 0 };
    uint32_t shown = 0;
    for (const struct status_cause *c = list->first_cause; c != NULL; c = c->next) {
        /* The causes are all listed, but the message names each cause once. */
        if (!status_cause_repeated(list, c)) {
            buf_printf(&text, "%s" STR_FMT ": " STR_FMT, shown > 0 ? ", " : "", STR_ARG(c->field),
                       STR_ARG(c->message));
            shown++;
        }
    }
    list->message =
        arena_printf(list->arena, STR_FMT " \"" STR_FMT "\" is invalid: %s" STR_FMT "%s",
                     STR_ARG(kind->group_kind), STR_ARG(name), shown > 1 ? "[" : "",
                     STR_ARG(buf_str(&text)), shown > 1 ? "]" : "");
    list->name = name;
    list->group = kind->group;
    list->kind = kind->kind;
    return list;
}

static void status_set_text(struct arena *a, struct tree *obj, const char *key, struct str value)
{
    if (value.n > 0) {
        tree_set(a, obj, str_from(key), tree_str(a, value));
    }
}

static struct tree *status_base(struct arena *a, const char *outcome)
{
    struct tree *t = tree_obj(a);
    tree_set(a, t, STR("kind"), tree_str(a, STR("Status")));
    tree_set(a, t, STR("apiVersion"), tree_str(a, STR("v1")));
    tree_set(a, t, STR("metadata"), tree_obj(a));
    tree_set(a, t, STR("status"), tree_str(a, str_from(outcome)));
    return t;
}

struct tree *status_tree(const struct status *status, struct arena *a)
{
    struct tree *t = status_base(a, "Failure");
    status_set_text(a, tree_get(t, STR("metadata")), "continue", status->continue_token);
    status_set_text(a, t, "message", status->message);
    status_set_text(a, t, "reason", status->reason);
    if (status->has_details || status->first_cause != NULL || status->retry_after_seconds > 0) {
        struct tree *has_details = tree_obj(a);
        status_set_text(a, has_details, "name", status->name);
        status_set_text(a, has_details, "group", status->group);
        status_set_text(a, has_details, "kind", status->kind);
        status_set_text(a, has_details, "uid", status->uid);
        if (status->first_cause != NULL) {
            struct tree *causes = tree_arr(a);
            for (const struct status_cause *c = status->first_cause; c != NULL; c = c->next) {
                struct tree *cause = tree_obj(a);
                status_set_text(a, cause, "reason", c->reason);
                status_set_text(a, cause, "message", c->message);
                status_set_text(a, cause, "field", c->field);
                tree_add(causes, cause);
            }
            tree_set(a, has_details, STR("causes"), causes);
        }
        if (status->retry_after_seconds > 0) {
            tree_set(a, has_details, STR("retryAfterSeconds"),
                     tree_i64(a, status->retry_after_seconds));
        }
        tree_set(a, t, STR("details"), has_details);
    }
    tree_set(a, t, STR("code"), tree_i64(a, status->code));
    return t;
}

struct tree *status_success(struct arena *a, const struct kind *kind, struct str name,
                            struct str uid)
{
    struct tree *t = status_base(a, "Success");
    if (name.n > 0) {
        struct tree *has_details = tree_obj(a);
        status_set_text(a, has_details, "name", name);
        status_set_text(a, has_details, "group", kind->group);
        status_set_text(a, has_details, "kind", kind->plural);
        status_set_text(a, has_details, "uid", uid);
        tree_set(a, t, STR("details"), has_details);
    }
    return t;
}
