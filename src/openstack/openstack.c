#include "openstack/openstack.h"

#include "base/timestamp.h"
#include "format/json.h"
#include "format/json_writer.h"

static void on_secret(void *ctx)
{
    const struct openstack *o = ctx;
    o->config.on_change(o->config.ctx);
}

void openstack_init(struct openstack *o, const struct openstack_config *config)
{
    *o = (struct openstack){ .config = *config, .loop = config->client->loop };
    secret_source_init(&o->source, config->client, config->files, on_secret, o);
    outside_call_init(&o->call, o->loop, config->outbound);
    openstack_set_secret(o, STR_NONE, STR_NONE);
}

static void openstack_close(struct openstack *o)
{
    o->stage = OPENSTACK_CLOSED;
    arena_wipe(&o->login);
    arena_wipe(&o->memory);
    o->cloud = (struct cloud_config){ 0 };
    o->session = (struct openstack_session){ .generation = o->session.generation };
}

void openstack_done(struct openstack *o)
{
    if (o->loop != NULL) {
        outside_call_done(&o->call);
        secret_source_done(&o->source);
        openstack_close(o);
    }
}

void openstack_set_secret(struct openstack *o, struct str namespace, struct str name)
{
    bool both = namespace.n > 0 && name.n > 0;
    struct secret_source_place place = {
        .namespace = both ? namespace : STR_NONE,
        .name = both ? name : STR_NONE,
        .key = OPENSTACK_SECRET_KEY,
        .file = OPENSTACK_FILE,
    };
    if (secret_source_set_place(&o->source, &place)) {
        outside_call_done(&o->call);
        outside_call_init(&o->call, o->loop, o->config.outbound);
        openstack_close(o);
        o->err = (struct err){ 0 };
    }
}

usec_t openstack_retry_at(const struct openstack *o)
{
    return MAX(o->source.retry_at, o->call.retry_at);
}

void openstack_refused(struct openstack *o, uint64_t generation)
{
    if (o->stage == OPENSTACK_OPEN && o->session.generation == generation) {
        openstack_close(o);
    }
}

/* ── what failed ───────────────────────────────────────────────────────────────────────────── */

static int openstack_fail(struct openstack *o, struct err *err, const char *what)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    (void)err_wrap(err, "OpenStack (" STR_FMT "): %s",
                   STR_ARG(secret_source_where(&o->source, &tmp)), what);
    /* ERR_BUSY says that a login is under way: a server that is busy (429) is another failure. */
    err->code = err->code == ERR_BUSY ? ERR_IO : err->code;
    o->err = *err;
    openstack_close(o);
    return -(int)err->code;
}

/* A login that came to nothing: the error becomes the answer, until the wait is over. */
static void openstack_end_login(struct openstack *o, struct err *err, const char *what,
                                usec_t at_least)
{
    if (o->call.retry_at <= loop_now(o->loop)) {
        outside_call_back_off(&o->call, at_least);
    }
    (void)openstack_fail(o, err, what); /* it is told when it is asked for */
    o->config.on_change(o->config.ctx);
}

/* ── login ─────────────────────────────────────────────────────────────────────────────────── */

/* The URL without its version, and without a slash at its end. */
static struct str base_url(struct str url)
{
    while (str_cut_suffix(url, STR("/"), &url)) {
    }
    if (!str_cut_suffix(url, STR("/v3"), &url)) {
        (void)str_cut_suffix(url, STR("/v2.0"), &url); /* or it names none */
    }
    while (str_cut_suffix(url, STR("/"), &url)) {
    }
    return url;
}

static bool has_version(struct str url, const char *version)
{
    while (str_cut_suffix(url, STR("/"), &url)) {
    }
    return str_cut_suffix(url, str_from(version), &url);
}

static void print_login_v3(const struct cloud_config *c, struct json_writer *w)
{
    jw_obj(w);
    jw_key(w, STR("auth"));
    jw_obj(w);
    jw_key(w, STR("identity"));
    jw_obj(w);
    jw_key(w, STR("methods"));
    jw_arr(w);
    jw_str(w, STR("password"));
    jw_arr_end(w);
    jw_key(w, STR("password"));
    jw_obj(w);
    jw_key(w, STR("user"));
    jw_obj(w);
    jw_key(w, STR("domain"));
    jw_obj(w);
    jw_pair(w, "name", c->domain_name);
    jw_obj_end(w);
    jw_pair(w, "name", c->username);
    jw_pair(w, "password", c->password);
    jw_obj_end(w);
    jw_obj_end(w);
    jw_obj_end(w);
    jw_key(w, STR("scope"));
    jw_obj(w);
    jw_key(w, STR("project"));
    jw_obj(w);
    jw_pair(w, "id", c->tenant_id);
    jw_obj_end(w);
    jw_obj_end(w);
    jw_obj_end(w);
    jw_obj_end(w);
}

static void print_login_v2(const struct cloud_config *c, struct json_writer *w)
{
    jw_obj(w);
    jw_key(w, STR("auth"));
    jw_obj(w);
    jw_key(w, STR("passwordCredentials"));
    jw_obj(w);
    jw_pair(w, "username", c->username);
    jw_pair(w, "password", c->password);
    jw_obj_end(w);
    jw_pair(w, "tenantId", c->tenant_id);
    jw_obj_end(w);
    jw_obj_end(w);
}

static bool is_region(const struct openstack *o, const struct jval *endpoint)
{
    struct str region = jval_str(jval_get(endpoint, STR("region")));
    struct str id = jval_str(jval_get(endpoint, STR("region_id")));
    return o->session.region.n == 0 || str_eq(region, o->session.region) ||
           str_eq(id, o->session.region);
}

/* The public URL of the compute service; v2.0 and v3 write it differently. */
static struct str endpoint_url(const struct openstack *o, const struct jval *endpoint)
{
    if (!is_region(o, endpoint)) {
        return STR_NONE;
    }
    if (o->v2) {
        return jval_str(jval_get(endpoint, STR("publicURL")));
    }
    return str_eq(jval_str(jval_get(endpoint, STR("interface"))), STR("public"))
               ? jval_str(jval_get(endpoint, STR("url")))
               : STR_NONE;
}

static void find_compute(struct openstack *o, const struct jval *catalogue)
{
    struct openstack_session *s = &o->session;
    uint32_t found = 0;
    if (jval_kind(catalogue) != JARR) {
        s->compute_error = STR("the catalogue of the token is missing");
        return;
    }
    JVAL_EACH (catalogue, service) {
        const struct jval *endpoints = jval_get(service, STR("endpoints"));
        if (!str_eq(jval_str(jval_get(service, STR("type"))), STR("compute")) ||
            jval_kind(endpoints) != JARR) {
            continue;
        }
        JVAL_EACH (endpoints, endpoint) {
            struct str url = endpoint_url(o, endpoint);
            while (str_cut_suffix(url, STR("/"), &url)) {
            }
            if (url.n > 0 && !str_eq(url, s->compute)) {
                s->compute = arena_str(&o->memory, url);
                found++;
            }
        }
    }
    if (found != 1) {
        s->compute = STR("");
        s->compute_error =
            arena_printf(&o->memory,
                         "the catalogue has %u public endpoints of type compute in region '" STR_FMT
                         "', want one",
                         found, STR_ARG(s->region));
    }
}

/* When the session is to be renewed. */
static usec_t renew_time(const struct openstack *o, struct str expires)
{
    struct timestamp at;
    struct err ignored = { 0 };
    usec_t life = OPENSTACK_LIFE;
    if (timestamp_parse(expires, &at, &ignored) == 0) {
        life = timestamp_to_usec(at) - server_clock_wall(&o->config.client->clock);
    }
    life = MAX(life, SECONDS(1)); /* a clock that is wrong must not make it log in all the time */
    return loop_now(o->loop) + MAX(life - OPENSTACK_EARLY, life / 2);
}

static int read_token(struct openstack *o, const struct outbound_reply *reply, struct err *err)
{
    const struct jval *root = NULL;
    struct err why = { 0 };
    if (json_parse(reply->body, JSON_GO, &o->memory, &root, &why) < 0) {
        return err_set(err, ERR_PROTO, "its answer is no JSON");
    }
    const struct jval *token = o->v2 ? jval_at(root, "access.token") : jval_get(root, STR("token"));
    struct str text = o->v2 ? jval_str(jval_get(token, STR("id"))) : reply->header;
    if (text.n == 0 || jval_kind(token) != JOBJ) {
        return err_set(err, ERR_PROTO, "its answer has no token");
    }
    o->session.token = arena_str(&o->memory, text);
    find_compute(o,
                 o->v2 ? jval_at(root, "access.serviceCatalog") : jval_get(token, STR("catalog")));
    o->renew_at =
        renew_time(o, jval_str(jval_get(token, o->v2 ? STR("expires") : STR("expires_at"))));
    return 0;
}

static void on_login(void *ctx, const struct outbound_reply *reply)
{
    struct openstack *o = ctx;
    struct err err = { 0 };
    int r = outside_call_judge(&o->call, reply, &err);
    if (r == -ERR_DENIED) {
        (void)err_set(&err, ERR_DENIED, "the identity service refused the credentials with %d",
                      reply->status);
        openstack_end_login(o, &err, "login", OPENSTACK_REFUSED_MIN);
        return;
    }
    r = r < 0 ? r : read_token(o, reply, &err);
    if (r < 0) {
        openstack_end_login(o, &err, "login", 0);
        return;
    }
    o->stage = OPENSTACK_OPEN;
    o->session.generation++;
    o->logins++;
    o->err = (struct err){ 0 };
    o->config.on_change(o->config.ctx);
}

static void send_login(struct openstack *o)
{
    static const struct outbound_header headers[] = {
        { STR_INIT("Content-Type"), STR_INIT("application/json") },
        { STR_INIT("Accept"), STR_INIT("application/json") },
    };
    CLEANUP(buf_done)
    struct buf url = { 0 };
    struct buf body = { 0 };
    struct json_writer w = json_writer_on(&body);
    if (o->v2) {
        print_login_v2(&o->cloud, &w);
    } else {
        print_login_v3(&o->cloud, &w);
    }
    buf_printf(&url, STR_FMT "%s", STR_ARG(base_url(o->cloud.auth_url)),
               o->v2 ? "/v2.0/tokens" : "/v3/auth/tokens");
    o->session = (struct openstack_session){
        .region = arena_str(&o->memory, o->cloud.region),
        .project = arena_str(&o->memory, o->cloud.tenant_id),
        .generation = o->session.generation,
    };
    outside_call_send(&o->call,
                      &(struct outbound_request){
                          .method = STR("POST"),
                          .url = buf_str(&url),
                          .headers = headers,
                          .header_n = ARRAY_LEN(headers),
                          .body = buf_str(&body),
                          .reply_header = STR("X-Subject-Token"),
                          .reply_max = OPENSTACK_REPLY_MAX,
                      },
                      on_login, o);
    explicit_bzero(body.p, body.n);
    buf_done(&body);
    arena_wipe(&o->login);
    o->cloud = (struct cloud_config){ 0 };
    o->stage = OPENSTACK_LOGS_IN;
}

/* ── discovery ─────────────────────────────────────────────────────────────────────────────── */

static bool is_usable(const struct jval *version)
{
    struct str status = jval_str(jval_get(version, STR("status")));
    return str_eq_fold(status, STR("stable")) || str_eq_fold(status, STR("current")) ||
           str_eq_fold(status, STR("supported")) || str_eq_fold(status, STR("deprecated"));
}

/* v3 is taken if there is one, unless the URL itself names v2.0. */
static int choose_version(struct openstack *o, struct str body, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *root = NULL;
    bool v2 = false;
    bool v3 = false;
    struct err why = { 0 };
    if (json_parse(body, JSON_GO, &tmp, &root, &why) < 0) {
        return err_set(err, ERR_PROTO, "its answer is no JSON");
    }
    const struct jval *values = jval_at(root, "versions.values");
    if (jval_kind(values) == JARR) {
        JVAL_EACH (values, version) {
            struct str id = jval_str(jval_get(version, STR("id")));
            v3 = v3 || (is_usable(version) && str_starts(id, STR("v3")));
            v2 = v2 || (is_usable(version) && str_starts(id, STR("v2")));
        }
    }
    if (!v2 && !v3) {
        return err_set(err, ERR_PROTO, "it has neither version v3 nor v2.0 of the identity API");
    }
    o->v2 = v2 && (!v3 || has_version(o->cloud.auth_url, "/v2.0"));
    return 0;
}

static void on_versions(void *ctx, const struct outbound_reply *reply)
{
    struct openstack *o = ctx;
    struct err err = { 0 };
    int r = reply->status == 300 ? 0 : outside_call_judge(&o->call, reply, &err);
    r = r < 0 ? r : choose_version(o, reply->body, &err);
    if (r < 0) {
        openstack_end_login(o, &err, "asking for the versions of the identity API", 0);
        return;
    }
    send_login(o);
}

static void send_discovery(struct openstack *o)
{
    static const struct outbound_header accept = { STR_INIT("Accept"),
                                                   STR_INIT("application/json") };
    CLEANUP(buf_done)
    struct buf url = { 0 };
    buf_printf(&url, STR_FMT "/", STR_ARG(base_url(o->cloud.auth_url)));
    o->stage = OPENSTACK_DISCOVERS;
    outside_call_send(
        &o->call,
        &(struct outbound_request){
            .method = STR("GET"), .url = buf_str(&url), .headers = &accept, .header_n = 1 },
        on_versions, o);
}

/* ── the session ───────────────────────────────────────────────────────────────────────────── */

static int openstack_begin(struct openstack *o, struct err *err)
{
    struct str text;
    int r = secret_source_get(&o->source, &text, err);
    if (r < 0) {
        return r;
    }
    openstack_close(o);
    r = cloud_config_parse(text, &o->login, &o->cloud, err);
    secret_source_wipe(&o->source);
    if (r < 0) {
        outside_call_back_off(&o->call, 0);
        return openstack_fail(o, err, "the credentials cannot be used");
    }
    if (has_version(o->cloud.auth_url, "/v3")) {
        o->v2 = false;
        send_login(o);
    } else {
        send_discovery(o);
    }
    return err_set(err, ERR_BUSY, "OpenStack is being asked for a token");
}

int openstack_get(struct openstack *o, struct openstack_session *ret, struct err *err)
{
    if (o->config.outbound == NULL) {
        return err_set(err, ERR_INVALID, "OpenStack cannot be reached from here");
    }
    if (o->stage == OPENSTACK_OPEN && loop_now(o->loop) < o->renew_at) {
        *ret = o->session;
        return 0;
    }
    if (o->call.call != NULL) {
        return err_set(err, ERR_BUSY, "OpenStack is being asked for a token");
    }
    if (!outside_call_ready(&o->call)) {
        *err = o->err;
        return -(int)err->code;
    }
    return openstack_begin(o, err);
}
