#include "sandbox/apiserver/discovery.h"

#include "base/base64.h"
#include "base/hex.h"
#include "format/digest.h"
#include "sandbox/apiserver/openapi.h"

#define AGGREGATED "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
#define PROTOBUF_V2 "application/com.github.proto-openapi.spec.v2"

struct discovery {
    const struct kinds *kinds;
    struct types *types;
    struct str accept;
    struct arena *out;
    struct arena tmp;
    struct buf body;
    struct json_writer w;
    const char *content_type;
};

struct discovery_subresource {
    unsigned flag;
    const char *name;
    const char *group; /* "" and empty kind: those of the resource */
    const char *version;
    const char *kind;
    const char *verbs;
};

/* By name, as the real server lists them. */
static const struct discovery_subresource subresources[] = {
    { SUBRESOURCE_BINDING, "binding", "", "", "Binding", "create" },
    { SUBRESOURCE_EVICTION, "eviction", "policy", "v1", "Eviction", "create" },
    { SUBRESOURCE_FINALIZE, "finalize", "", "", "", "update" },
    { SUBRESOURCE_LOG, "log", "", "", "", "get" },
    { SUBRESOURCE_SCALE, "scale", "autoscaling", "v1", "Scale", "get,patch,update" },
    { SUBRESOURCE_STATUS, "status", "", "", "", "get,patch,update" },
    { SUBRESOURCE_TOKEN, "token", "authentication.k8s.io", "v1", "TokenRequest", "create" },
};

static const char *kind_verbs(const struct kind *kind)
{
    if (kind_is(kind, KIND_CUSTOM)) {
        return "delete,deletecollection,get,list,patch,create,update,watch";
    }
    if (kind_is(kind, KIND_REVIEW)) {
        return "create";
    }
    return kind_is(kind, KIND_NO_DELETECOLLECTION)
               ? "create,delete,get,list,patch,update,watch"
               : "create,delete,deletecollection,get,list,patch,update,watch";
}

static void name_list_write(struct json_writer *w, const char *key, struct str list)
{
    struct str word;
    jw_key(w, str_from(key));
    jw_arr(w);
    while (list.n > 0 && str_split_next(&list, ',', &word)) {
        jw_str(w, word);
    }
    jw_arr_end(w);
}

static void names_write(struct json_writer *w, const char *key,
                        const struct str names[KIND_NAMES_MAX])
{
    if (names[0].n == 0) {
        return;
    }
    jw_key(w, str_from(key));
    jw_arr(w);
    for (uint32_t i = 0; i < KIND_NAMES_MAX && names[i].n > 0; i++) {
        jw_str(w, names[i]);
    }
    jw_arr_end(w);
}

/* The kinds of a group version ("" = all), by name. */
static uint32_t kinds_sorted(struct discovery *d, struct str api_version, const struct kind ***ret)
{
    const struct kind **list = ARENA_ARRAY(&d->tmp, const struct kind *, d->kinds->n + 1u);
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->kinds->n; i++) {
        const struct kind *kind = d->kinds->items[i];
        if (!str_eq(kind->api_version, api_version)) {
            continue;
        }
        uint32_t at = n++;
        while (at > 0 && str_cmp(list[at - 1]->plural, kind->plural) > 0) {
            list[at] = list[at - 1];
            at--;
        }
        list[at] = kind;
    }
    *ret = list;
    return n;
}

/* first 8 bytes of SHA-256 over "group/version/Kind", in base64 */
static struct str storage_hash(struct discovery *d, const struct kind *kind)
{
    if (kind->storage_hash.n > 0) {
        return kind->storage_hash;
    }
    unsigned char hash[SHA256_BYTES];
    sha256(arena_printf(&d->tmp, STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(kind->group),
                        STR_ARG(kind->version), STR_ARG(kind->kind)),
           hash);
    return base64_encode(&d->tmp, (struct str){ .p = (const char *)hash, .n = 8 });
}

static void resource_write(struct discovery *d, const struct kind *kind)
{
    struct json_writer *w = &d->w;
    jw_obj(w);
    jw_pair(w, "name", kind->plural);
    jw_pair(w, "singularName", kind->singular);
    jw_pair_bool(w, "namespaced", kind_is(kind, KIND_NAMESPACED));
    jw_pair(w, "kind", kind->kind);
    name_list_write(w, "verbs", str_from(kind_verbs(kind)));
    names_write(w, "shortNames", kind->short_names);
    names_write(w, "categories", kind->categories);
    if (!kind_is(kind, KIND_REVIEW)) {
        jw_pair(w, "storageVersionHash", storage_hash(d, kind));
    }
    jw_obj_end(w);
    for (size_t i = 0; i < ARRAY_LEN(subresources); i++) {
        const struct discovery_subresource *s = &subresources[i];
        if ((kind->subresources & s->flag) == 0) {
            continue;
        }
        jw_obj(w);
        jw_pair(w, "name", arena_printf(&d->tmp, STR_FMT "/%s", STR_ARG(kind->plural), s->name));
        jw_pair(w, "singularName", STR(""));
        jw_pair_bool(w, "namespaced", kind_is(kind, KIND_NAMESPACED));
        if (s->group[0] != '\0') {
            jw_pair(w, "group", str_from(s->group));
            jw_pair(w, "version", str_from(s->version));
        }
        jw_pair(w, "kind", s->kind[0] != '\0' ? str_from(s->kind) : kind->kind);
        name_list_write(w, "verbs", str_from(s->verbs));
        jw_obj_end(w);
    }
}

static bool resources_write(struct discovery *d, struct str api_version)
{
    struct json_writer *w = &d->w;
    const struct kind **list;
    uint32_t n = kinds_sorted(d, api_version, &list);
    if (n == 0) {
        return false;
    }
    jw_obj(w);
    jw_pair(w, "kind", STR("APIResourceList"));
    if (list[0]->group.n > 0) {
        jw_pair(w, "apiVersion", STR("v1"));
    }
    jw_pair(w, "groupVersion", api_version);
    jw_key(w, STR("resources"));
    jw_arr(w);
    for (uint32_t i = 0; i < n; i++) {
        resource_write(d, list[i]);
    }
    jw_arr_end(w);
    jw_obj_end(w);
    return true;
}

static bool groups_contain(const struct str *groups, uint32_t n, struct str group)
{
    for (uint32_t i = 0; i < n; i++) {
        if (str_eq(groups[i], group)) {
            return true;
        }
    }
    return false;
}

/* In the order of the real server: its own priority first, custom groups by name. */
static uint32_t groups_sorted(struct discovery *d, struct str **ret)
{
    static const char *const first[] = { "apps",
                                         "events.k8s.io",
                                         "authentication.k8s.io",
                                         "authorization.k8s.io",
                                         "batch",
                                         "policy",
                                         "rbac.authorization.k8s.io",
                                         "storage.k8s.io",
                                         "apiextensions.k8s.io",
                                         "scheduling.k8s.io",
                                         "coordination.k8s.io" };
    struct str *groups = ARENA_ARRAY(&d->tmp, struct str, d->kinds->n + ARRAY_LEN(first));
    uint32_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(first); i++) {
        if (kinds_has_group(d->kinds, str_from(first[i]), STR_NONE)) {
            groups[n++] = str_from(first[i]);
        }
    }
    uint32_t fixed = n;
    for (uint32_t i = 0; i < d->kinds->n; i++) {
        struct str group = d->kinds->items[i]->group;
        if (group.n == 0 || groups_contain(groups, n, group)) {
            continue;
        }
        uint32_t at = n++;
        while (at > fixed && str_cmp(groups[at - 1], group) > 0) {
            groups[at] = groups[at - 1];
            at--;
        }
        groups[at] = group;
    }
    *ret = groups;
    return n;
}

/* "v1" before "v1beta2" before "v1alpha1"; what is no such version comes last, by name. */
static int version_rank(struct str version)
{
    struct str rest;
    uint32_t major = 0;
    size_t digits = 0;
    if (!str_cut_prefix(version, STR("v"), &rest)) {
        return 0;
    }
    while (digits < rest.n && digits < 4 && rest.p[digits] >= '0' && rest.p[digits] <= '9') {
        digits++;
    }
    if (!str_to_u32(str_sub(rest, 0, digits), &major)) {
        return 0;
    }
    struct str stage = str_sub(rest, digits, rest.n - digits);
    uint32_t minor = 0;
    if (stage.n == 0) {
        return (int)(2000000 + major * 100);
    }
    if (str_cut_prefix(stage, STR("beta"), &rest) && str_to_u32(rest, &minor)) {
        return (int)(1000000 + major * 100 + MIN(minor, 99u));
    }
    if (str_cut_prefix(stage, STR("alpha"), &rest) && str_to_u32(rest, &minor)) {
        return (int)(1 + major * 100 + MIN(minor, 99u));
    }
    return 0;
}

static uint32_t versions_sorted(struct discovery *d, struct str group, struct str **ret)
{
    struct str *versions = ARENA_ARRAY(&d->tmp, struct str, d->kinds->n + 1u);
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->kinds->n; i++) {
        struct str version = d->kinds->items[i]->version;
        if (!str_eq(d->kinds->items[i]->group, group) || groups_contain(versions, n, version)) {
            continue;
        }
        uint32_t at = n++;
        while (at > 0 && version_rank(versions[at - 1]) < version_rank(version)) {
            versions[at] = versions[at - 1];
            at--;
        }
        versions[at] = version;
    }
    *ret = versions;
    return n;
}

static void version_write(struct discovery *d, struct str group, struct str version)
{
    jw_obj(&d->w);
    jw_pair(&d->w, "groupVersion",
            arena_printf(&d->tmp, STR_FMT "/" STR_FMT, STR_ARG(group), STR_ARG(version)));
    jw_pair(&d->w, "version", version);
    jw_obj_end(&d->w);
}

/* The members of an APIGroup. */
static void group_write(struct discovery *d, struct str group)
{
    struct json_writer *w = &d->w;
    struct str *versions;
    uint32_t n = versions_sorted(d, group, &versions);
    jw_pair(w, "name", group);
    jw_key(w, STR("versions"));
    jw_arr(w);
    for (uint32_t i = 0; i < n; i++) {
        version_write(d, group, versions[i]);
    }
    jw_arr_end(w);
    jw_key(w, STR("preferredVersion"));
    version_write(d, group, versions[0]);
}

static void response_kind_write(struct json_writer *w, struct str group, struct str version,
                                struct str kind)
{
    jw_key(w, STR("responseKind"));
    jw_obj(w);
    jw_pair(w, "group", group);
    jw_pair(w, "version", version);
    jw_pair(w, "kind", kind);
    jw_obj_end(w);
}

static void aggregated_resource(struct discovery *d, const struct kind *kind)
{
    struct json_writer *w = &d->w;
    bool custom = kind_is(kind, KIND_CUSTOM);
    struct str group = custom ? kind->group : STR("");
    struct str version = custom ? kind->version : STR("");
    jw_obj(w);
    jw_pair(w, "resource", kind->plural);
    response_kind_write(w, group, version, kind->kind);
    jw_pair(w, "scope", kind_is(kind, KIND_NAMESPACED) ? STR("Namespaced") : STR("Cluster"));
    jw_pair(w, "singularResource", kind->singular);
    name_list_write(w, "verbs", str_from(kind_verbs(kind)));
    names_write(w, "shortNames", kind->short_names);
    names_write(w, "categories", kind->categories);
    if (kind->subresources != 0) {
        jw_key(w, STR("subresources"));
        jw_arr(w);
        for (size_t i = 0; i < ARRAY_LEN(subresources); i++) {
            const struct discovery_subresource *s = &subresources[i];
            if ((kind->subresources & s->flag) == 0) {
                continue;
            }
            bool own = s->group[0] == '\0';
            jw_obj(w);
            jw_pair(w, "subresource", str_from(s->name));
            response_kind_write(w, own ? group : str_from(s->group),
                                own ? version : str_from(s->version),
                                s->kind[0] != '\0' ? str_from(s->kind) : kind->kind);
            name_list_write(w, "verbs", str_from(s->verbs));
            jw_obj_end(w);
        }
        jw_arr_end(w);
    }
    jw_obj_end(w);
}

static void aggregated_group(struct discovery *d, struct str group)
{
    struct json_writer *w = &d->w;
    struct str *versions;
    uint32_t n = versions_sorted(d, group, &versions);
    jw_obj(w);
    jw_key(w, STR("metadata"));
    jw_obj(w);
    jw_pair_some(w, "name", group);
    jw_obj_end(w);
    jw_key(w, STR("versions"));
    jw_arr(w);
    for (uint32_t i = 0; i < n; i++) {
        struct str api_version = group.n == 0 ? versions[i]
                                              : arena_printf(&d->tmp, STR_FMT "/" STR_FMT,
                                                             STR_ARG(group), STR_ARG(versions[i]));
        const struct kind **list;
        uint32_t count = kinds_sorted(d, api_version, &list);
        jw_obj(w);
        jw_pair(w, "version", versions[i]);
        jw_key(w, STR("resources"));
        jw_arr(w);
        for (uint32_t j = 0; j < count; j++) {
            aggregated_resource(d, list[j]);
        }
        jw_arr_end(w);
        jw_pair(w, "freshness", STR("Current"));
        jw_obj_end(w);
    }
    jw_arr_end(w);
    jw_obj_end(w);
}

static bool aggregated_write(struct discovery *d, bool core)
{
    struct json_writer *w = &d->w;
    jw_obj(w);
    jw_pair(w, "kind", STR("APIGroupDiscoveryList"));
    jw_pair(w, "apiVersion", STR("apidiscovery.k8s.io/v2"));
    jw_key(w, STR("metadata"));
    jw_obj(w);
    jw_obj_end(w);
    jw_key(w, STR("items"));
    jw_arr(w);
    if (core) {
        aggregated_group(d, STR(""));
    } else {
        struct str *groups;
        uint32_t n = groups_sorted(d, &groups);
        for (uint32_t i = 0; i < n; i++) {
            aggregated_group(d, groups[i]);
        }
    }
    jw_arr_end(w);
    jw_obj_end(w);
    d->content_type = AGGREGATED;
    return true;
}

static bool core_versions_write(struct discovery *d)
{
    jw_raw(&d->w, STR("{\"kind\":\"APIVersions\",\"versions\":[\"v1\"],"
                      "\"serverAddressByClientCIDRs\":[{\"clientCIDR\":\"0.0.0.0/0\","
                      "\"serverAddress\":\"127.0.0.1:6443\"}]}"));
    return true;
}

static bool groups_write(struct discovery *d)
{
    struct json_writer *w = &d->w;
    struct str *groups;
    uint32_t n = groups_sorted(d, &groups);
    jw_obj(w);
    jw_pair(w, "kind", STR("APIGroupList"));
    jw_pair(w, "apiVersion", STR("v1"));
    jw_key(w, STR("groups"));
    jw_arr(w);
    for (uint32_t i = 0; i < n; i++) {
        jw_obj(w);
        group_write(d, groups[i]);
        jw_obj_end(w);
    }
    jw_arr_end(w);
    jw_obj_end(w);
    return true;
}

static bool group_document_write(struct discovery *d, struct str group)
{
    if (!kinds_has_group(d->kinds, group, STR_NONE)) {
        return false;
    }
    jw_obj(&d->w);
    jw_pair(&d->w, "kind", STR("APIGroup"));
    jw_pair(&d->w, "apiVersion", STR("v1"));
    group_write(d, group);
    jw_obj_end(&d->w);
    return true;
}

/* Clients keep a document as long as its hash stays, so a custom one is hashed as it is. */
static void openapi_index_entry(struct discovery *d, const struct kind *kind)
{
    unsigned char hash[SHA256_BYTES];
    CLEANUP(buf_done)
    struct buf document = { 0 };
    if (kind_is(kind, KIND_CUSTOM)) {
        (void)openapi_document(d->kinds, d->types, kind->api_version, &document); /* it is served */
    } else {
        buf_add(&document, kind->api_version);
    }
    sha256(buf_str(&document), hash);
    buf_reset(&document);
    hex_add(&document, hash, sizeof(hash), /* upper= */ true);
    const char *prefix = kind->group.n > 0 ? "apis" : "api";
    jw_key(&d->w, arena_printf(&d->tmp, "%s/" STR_FMT, prefix, STR_ARG(kind->api_version)));
    jw_obj(&d->w);
    jw_pair(&d->w, "serverRelativeURL",
            arena_printf(&d->tmp, "/openapi/v3/%s/" STR_FMT "?hash=" STR_FMT, prefix,
                         STR_ARG(kind->api_version), STR_ARG(buf_str(&document))));
    jw_obj_end(&d->w);
}

static bool openapi_index_write(struct discovery *d)
{
    struct str *seen = ARENA_ARRAY(&d->tmp, struct str, d->kinds->n + 1u);
    uint32_t n = 0;
    jw_obj(&d->w);
    jw_key(&d->w, STR("paths"));
    jw_obj(&d->w);
    for (uint32_t i = 0; i < d->kinds->n; i++) {
        const struct kind *kind = d->kinds->items[i];
        if (!groups_contain(seen, n, kind->api_version)) {
            seen[n++] = kind->api_version;
            openapi_index_entry(d, kind);
        }
    }
    jw_obj_end(&d->w);
    jw_obj_end(&d->w);
    return true;
}

/* A document without definitions makes old clients skip validation on their side. */
static bool openapi_v2_write(struct discovery *d)
{
    if (!str_starts(d->accept, STR(PROTOBUF_V2))) {
        jw_raw(&d->w, STR("{\"swagger\":\"2.0\",\"info\":{\"title\":\"Kubernetes\","
                          "\"version\":\"v1.35.4\"},\"paths\":{},\"definitions\":{}}"));
        return true;
    }
    /* The same in protobuf: 1 swagger, 2 info (1 title, 2 version), 8 paths, 9 definitions. */
    buf_add(&d->body, STR("\x0a\x03"
                          "2.0"
                          "\x12\x15\x0a\x0a"
                          "Kubernetes"
                          "\x12\x07"
                          "v1.35.4"
                          "\x42"));
    buf_add_char(&d->body, '\0');
    buf_add_char(&d->body, '\x4a');
    buf_add_char(&d->body, '\0');
    /* Clients ask with an '@' that no parser of media types takes; the answer has a dot. */
    d->content_type = PROTOBUF_V2 ".v1.0+protobuf";
    return true;
}

static bool version_info_write(struct discovery *d)
{
    jw_raw(
        &d->w,
        STR("{\"major\":\"1\",\"minor\":\"35\",\"emulationMajor\":\"1\",\"emulationMinor\":\"35\","
            "\"minCompatibilityMajor\":\"1\",\"minCompatibilityMinor\":\"34\","
            "\"gitVersion\":\"v1.35.4\",\"gitCommit\":\"$Format:%H$\",\"gitTreeState\":\"\","
            "\"buildDate\":\"1970-01-01T00:00:00Z\",\"goVersion\":\"go1.26.8\","
            "\"compiler\":\"gc\",\"platform\":\"linux/amd64\"}"));
    return true;
}

static bool health_write(struct discovery *d)
{
    buf_add(&d->body, STR("ok"));
    d->content_type = "text/plain; charset=utf-8";
    return true;
}

static bool aggregated_wanted(struct str accept)
{
    struct str one;
    while (accept.n > 0 && str_split_next(&accept, ',', &one)) {
        if (str_eq(str_trim(one), STR(AGGREGATED))) {
            return true;
        }
    }
    return false;
}

static bool discovery_write(struct discovery *d, struct str path)
{
    struct str rest;
    bool aggregated = aggregated_wanted(d->accept);
    if (str_eq(path, STR("/api"))) {
        return aggregated ? aggregated_write(d, /* core= */ true) : core_versions_write(d);
    }
    if (str_eq(path, STR("/apis"))) {
        return aggregated ? aggregated_write(d, /* core= */ false) : groups_write(d);
    }
    if (str_eq(path, STR("/version"))) {
        return version_info_write(d);
    }
    if (str_eq(path, STR("/readyz")) || str_eq(path, STR("/livez")) ||
        str_eq(path, STR("/healthz"))) {
        return health_write(d);
    }
    if (str_eq(path, STR("/openapi/v2"))) {
        return openapi_v2_write(d);
    }
    if (str_eq(path, STR("/openapi/v3"))) {
        return openapi_index_write(d);
    }
    if (str_cut_prefix(path, STR("/openapi/v3/api/"), &rest) ||
        str_cut_prefix(path, STR("/openapi/v3/apis/"), &rest)) {
        return openapi_document(d->kinds, d->types, rest, &d->body);
    }
    if (str_cut_prefix(path, STR("/api/"), &rest)) {
        return str_find_char(rest, '/') == SIZE_MAX && resources_write(d, rest);
    }
    if (!str_cut_prefix(path, STR("/apis/"), &rest)) {
        return false;
    }
    size_t slash = str_find_char(rest, '/');
    return slash == SIZE_MAX ? group_document_write(d, rest)
                             : str_rfind_char(rest, '/') == slash && resources_write(d, rest);
}

bool discovery_answer(const struct kinds *kinds, struct types *types, struct str path,
                      struct str accept, struct arena *out, struct discovery_reply *ret)
{
    struct discovery d = {
        .kinds = kinds,
        .types = types,
        .accept = accept,
        .out = out,
        .content_type = "application/json",
    };
    d.w = json_writer_on(&d.body);
    if (path.n > 1) {
        (void)str_cut_suffix(path, STR("/"), &path); /* unchanged when there is none */
    }
    bool found = discovery_write(&d, path) && !d.body.full;
    if (found) {
        ret->content_type = str_from(d.content_type);
        ret->body = arena_str(out, buf_str(&d.body));
    }
    buf_done(&d.body);
    arena_done(&d.tmp);
    return found;
}
