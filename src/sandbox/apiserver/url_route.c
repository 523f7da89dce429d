#include "sandbox/apiserver/url_route.h"
#include "base/hex.h"

int url_unescape(struct str s, bool plus, struct arena *out, struct str *ret, struct err *err)
{
    if (str_find_char(s, '%') == SIZE_MAX && (!plus || str_find_char(s, '+') == SIZE_MAX)) {
        *ret = s;
        return 0;
    }
    char *text = arena_alloc(out, s.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] != '%') {
            text[n++] = plus && s.p[i] == '+' ? ' ' : s.p[i];
            continue;
        }
        int high = i + 1 < s.n ? hex_digit(s.p[i + 1]) : -1;
        int low = i + 2 < s.n ? hex_digit(s.p[i + 2]) : -1;
        if (high < 0 || low < 0) {
            struct str bad = str_sub(s, i, MIN(s.n - i, (size_t)3));
            return err_set(err, ERR_INVALID, "invalid URL escape \"" STR_FMT "\"", STR_ARG(bad));
        }
        text[n++] = (char)(high * 16 + low);
        i += 2;
    }
    *ret = (struct str){ .p = text, .n = n };
    return 0;
}

bool url_parse_bool(struct str s, bool *ret)
{
    static const char *const yes[] = { "1", "t", "T", "TRUE", "true", "True" };
    static const char *const no[] = { "0", "f", "F", "FALSE", "false", "False" };
    for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
        if (str_eq(s, str_from(yes[i])) || str_eq(s, str_from(no[i]))) {
            *ret = str_eq(s, str_from(yes[i]));
            return true;
        }
    }
    return false;
}

static const struct {
    const char *name;
    size_t offset;
} url_param_names[] = {
    { "watch", offsetof(struct url_params, watch) },
    { "limit", offsetof(struct url_params, limit) },
    { "continue", offsetof(struct url_params, continue_token) },
    { "resourceVersion", offsetof(struct url_params, resource_version) },
    { "resourceVersionMatch", offsetof(struct url_params, resource_version_match) },
    { "labelSelector", offsetof(struct url_params, label_selector) },
    { "fieldSelector", offsetof(struct url_params, field_selector) },
    { "timeoutSeconds", offsetof(struct url_params, timeout_seconds) },
    { "allowWatchBookmarks", offsetof(struct url_params, allow_watch_bookmarks) },
    { "sendInitialEvents", offsetof(struct url_params, send_initial_events) },
    { "dryRun", offsetof(struct url_params, dry_run) },
    { "fieldManager", offsetof(struct url_params, field_manager) },
    { "force", offsetof(struct url_params, force) },
    { "fieldValidation", offsetof(struct url_params, field_validation) },
    { "gracePeriodSeconds", offsetof(struct url_params, grace_period_seconds) },
    { "propagationPolicy", offsetof(struct url_params, propagation_policy) },
    { "orphanDependents", offsetof(struct url_params, orphan_dependents) },
    { "includeObject", offsetof(struct url_params, include_object) },
    { "pretty", offsetof(struct url_params, pretty) },
};

static int url_parse_query(struct str query, struct arena *out, struct url_params *ret,
                           struct err *err)
{
    struct str pair;
    while (query.n > 0 && str_split_next(&query, '&', &pair)) {
        struct str name;
        struct str value;
        (void)str_cut(pair, STR("="), &name, &value); /* a name alone has an empty value */
        int r = url_unescape(name, true, out, &name, err);
        if (r == 0) {
            r = url_unescape(value, true, out, &value, err);
        }
        if (r < 0) {
            return r;
        }
        for (size_t i = 0; i < ARRAY_LEN(url_param_names); i++) {
            struct str *location = (struct str *)(void *)((char *)ret + url_param_names[i].offset);
            if (str_eq(name, str_from(url_param_names[i].name)) && location->p == NULL) {
                *location = value.p == NULL ? STR("") : value;
            }
        }
    }
    return 0;
}

#define URL_PARTS_MAX 12u /* the longest URL we serve has nine */

/* Behind group and version: [watch/] [namespaces/NS/] plural [/name [/subresource]]. */
static void url_parse_resource(struct url_route *r, const struct str *parts, uint32_t n)
{
    if (n > 0 && str_eq(parts[0], STR("watch"))) {
        r->params.watch = STR("true");
        parts++;
        n--;
    }
    if (n == 0) {
        r->target = URL_RESOURCES;
        return;
    }
    bool of_namespace =
        n > 2 && (str_eq(parts[2], STR("status")) || str_eq(parts[2], STR("finalize")));
    if (str_eq(parts[0], STR("namespaces")) && n > 2 && !of_namespace) {
        r->namespace = parts[1];
        parts += 2;
        n -= 2;
    }
    r->plural = parts[0];
    r->target = n > 1 ? URL_OBJECT : URL_COLLECTION;
    r->name = n > 1 ? parts[1] : STR("");
    r->subresource = n > 2 ? parts[2] : STR("");
    if (n > 3) {
        r->target = URL_UNKNOWN;
    }
}

static void url_parse_target(struct url_route *r, const struct str *parts, uint32_t n)
{
    struct str first = n > 0 ? parts[0] : STR("");
    if (n == 0) {
        r->target = URL_ROOT;
    } else if (str_eq(first, STR("api"))) {
        if (n == 1) {
            r->target = URL_API;
        } else {
            r->version = parts[1];
            url_parse_resource(r, parts + 2, n - 2);
        }
    } else if (str_eq(first, STR("apis"))) {
        r->group = n > 1 ? parts[1] : STR("");
        r->target = n > 1 ? URL_GROUP : URL_APIS;
        if (n > 2) {
            r->version = parts[2];
            url_parse_resource(r, parts + 3, n - 3);
        }
    } else if (str_eq(first, STR("version")) && n == 1) {
        r->target = URL_VERSION;
    } else if (str_eq(first, STR("healthz")) || str_eq(first, STR("livez")) ||
               str_eq(first, STR("readyz"))) {
        r->target = URL_HEALTH;
    } else if (str_eq(first, STR("metrics")) && n == 1) {
        r->target = URL_METRICS;
    } else if (str_eq(first, STR("openapi"))) {
        r->target = URL_OPENAPI;
    }
}

int url_route_parse(struct str url, struct arena *out, struct url_route *ret, struct err *err)
{
    struct url_route r = { .target = URL_UNKNOWN };
    struct str query;
    (void)str_cut(url, STR("?"), &r.path, &query); /* most have none */
    int status = url_parse_query(query, out, &r.params, err);
    if (status < 0) {
        return status;
    }
    struct str parts[URL_PARTS_MAX];
    uint32_t n = 0;
    struct str rest = r.path;
    struct str part;
    while (str_split_next(&rest, '/', &part)) {
        if (part.n == 0) {
            continue; /* the leading slash, and doubled ones */
        }
        if (n == URL_PARTS_MAX) {
            *ret = r;
            return 0;
        }
        status = url_unescape(part, false, out, &parts[n++], err);
        if (status < 0) {
            return status;
        }
    }
    url_parse_target(&r, parts, n);
    *ret = r;
    return 0;
}
