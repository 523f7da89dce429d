/*
 * url_route: which resource, object and subresource a URL names. Pure: whether they exist is not
 * known here.
 *
 * "/apis/policy/v1/namespaces/a/poddisruptionbudgets/b/status?dryRun=All" is taken apart as the
 * real server does it, the old "/watch/" prefix included. Texts are percent-decoded into the
 * arena; of a parameter given twice the first counts, as in Go.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

enum url_target {
    URL_UNKNOWN,    /* outside of the API */
    URL_ROOT,       /* "/" */
    URL_VERSION,    /* "/version" */
    URL_HEALTH,     /* "/healthz", "/livez", "/readyz" and what is below */
    URL_METRICS,    /* "/metrics" */
    URL_OPENAPI,    /* "/openapi/…" */
    URL_API,        /* "/api" */
    URL_APIS,       /* "/apis" */
    URL_GROUP,      /* "/apis/policy" */
    URL_RESOURCES,  /* "/api/v1", "/apis/policy/v1" */
    URL_COLLECTION, /* objects of a resource */
    URL_OBJECT,     /* one of them, or a subresource of it */
};

struct url_params {
    struct str watch;
    struct str limit;
    struct str continue_token;
    struct str resource_version;
    struct str resource_version_match;
    struct str label_selector;
    struct str field_selector;
    struct str timeout_seconds;
    struct str allow_watch_bookmarks;
    struct str send_initial_events;
    struct str dry_run;
    struct str field_manager;
    struct str force;
    struct str field_validation;
    struct str grace_period_seconds;
    struct str propagation_policy;
    struct str orphan_dependents;
    struct str include_object;
    struct str pretty;
};

struct url_route {
    enum url_target target;
    struct str path; /* without query, as sent */
    struct str group;
    struct str version;
    struct str plural;
    struct str namespace; /* "" = all, or none */
    struct str name;
    struct str subresource;
    struct url_params params;
};

/* -ERR_INVALID for a URL that does not decode. */
NODISCARD
int url_route_parse(struct str url, struct arena *out, struct url_route *ret, struct err *err);

/* Percent-decodes; `plus` also turns '+' into a space, as in queries. */
NODISCARD
int url_unescape(struct str s, bool plus, struct arena *out, struct str *ret, struct err *err);

/* Go's strconv.ParseBool; `*ret` untouched when it is none. */
bool url_parse_bool(struct str s, bool *ret);
