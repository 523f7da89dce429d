#include "host/kubeconfig.h"

#include <errno.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/buf.h"
#include "format/json_writer.h"
#include "format/yaml.h"
#include "host/file.h"
#include "host/local_address.h"
#include "host/proxy.h"

struct config {
    struct str path;
    struct ydoc doc;
};

/* What reading needs at every step. */
struct reader {
    const struct kubeconfig_source *source;
    struct arena *out;
    struct config configs[KUBECONFIG_FILES_MAX];
    uint32_t n;
};

/* One entry of clusters, contexts or users, and the file that holds it. */
struct entry {
    const struct config *config;
    const struct jval *value; /* NULL = not found */
    const char *what;         /* "cluster" */
    struct str name;
};

static const char *source_env(void *ctx, const char *name)
{
    const struct kubeconfig_source *source = ctx;
    const char *const *env = source->env != NULL ? source->env : (const char *const *)environ;
    struct str wanted = str_from(name);
    for (size_t i = 0; env[i] != NULL; i++) {
        struct str key;
        struct str value;
        if (str_cut(str_from(env[i]), STR("="), &key, &value) && str_eq(key, wanted)) {
            return value.p;
        }
    }
    return NULL;
}

static struct str env_of(const struct kubeconfig_source *source, const char *name)
{
    return str_from(source_env((void *)(uintptr_t)source, name));
}

/* "FILE:LINE: " in front of what is said about a value. */
static int complain(const struct config *c, const struct jval *v, struct err *err)
{
    struct pos pos = ydoc_pos(&c->doc, v);
    err->pos = pos;
    if (pos.line == 0) {
        return err_wrap(err, "kubeconfig '" STR_FMT "'", STR_ARG(c->path));
    }
    return err_wrap(err, "kubeconfig '" STR_FMT "': line %u", STR_ARG(c->path), pos.line);
}

static int complain_kind(const struct entry *e, const char *key, const struct jval *v,
                         const char *want, struct err *err)
{
    (void)err_set(err, ERR_INVALID, "%s '" STR_FMT "': %s: found %s, want %s", e->what,
                  STR_ARG(e->name), key, jkind_name(jval_kind(v)), want);
    return complain(e->config, v, err);
}

/* Most texts end up in a header or a URL: none may end it early. */
static bool is_one_line(struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c < ' ' || c == 0x7f) {
            return false;
        }
    }
    return true;
}

/* An absent or null member leaves `*ret` as it is. */
static int read_str(const struct reader *r, const struct entry *e, const char *key, struct str *ret,
                    struct err *err)
{
    const struct jval *v = jval_get(e->value, str_from(key));
    if (jval_kind(v) == JNULL) {
        return 0;
    }
    if (jval_kind(v) != JSTR) {
        return complain_kind(e, key, v, "a string", err);
    }
    struct str text = jval_str(v);
    if (!is_one_line(text)) {
        (void)err_set(err, ERR_INVALID, "%s '" STR_FMT "': %s: want one line of text", e->what,
                      STR_ARG(e->name), key);
        return complain(e->config, v, err);
    }
    *ret = arena_str(r->out, text);
    return 0;
}

static int read_bool(const struct entry *e, const char *key, bool *ret, struct err *err)
{
    const struct jval *v = jval_get(e->value, str_from(key));
    if (jval_kind(v) == JNULL) {
        return 0;
    }
    if (jval_kind(v) != JBOOL) {
        return complain_kind(e, key, v, "true or false", err);
    }
    *ret = jval_bool(v, false);
    return 0;
}

/* A relative name begins at the file that holds it. */
static struct str path_beside(const struct reader *r, const struct config *c, struct str path)
{
    size_t slash = str_rfind_char(c->path, '/');
    if (path.n == 0 || path.p[0] == '/' || slash == SIZE_MAX) {
        return path;
    }
    return arena_printf(r->out, STR_FMT "/" STR_FMT, STR_ARG(str_sub(c->path, 0, slash)),
                        STR_ARG(path));
}

/* `key`-data in base64, or the file that `key` names; the data wins, as in client-go. */
static int read_pem(const struct reader *r, const struct entry *e, const char *key, struct str *ret,
                    struct err *err)
{
    char data_key[64];
    (void)snprintf(data_key, sizeof(data_key), "%s-data", key);
    const struct jval *data = jval_get(e->value, str_from(data_key));
    if (jval_kind(data) != JNULL && jval_kind(data) != JSTR) {
        return complain_kind(e, data_key, data, "a string", err);
    }
    if (jval_str(data).n > 0) {
        if (!base64_decode(jval_str(data), r->out, ret)) {
            (void)err_set(err, ERR_INVALID, "%s '" STR_FMT "': %s: is not base64", e->what,
                          STR_ARG(e->name), data_key);
            return complain(e->config, data, err);
        }
        return 0;
    }
    struct str path = STR_NONE;
    int rc = read_str(r, e, key, &path, err);
    if (rc < 0 || path.n == 0) {
        return rc;
    }
    if (r->source->no_files) {
        (void)err_set(err, ERR_INVALID, "%s: names a file", key);
        return complain(e->config, NULL, err);
    }
    rc = file_read(path_beside(r, e->config, path), CREDENTIAL_FILE_BYTES_MAX, r->out, ret, err);
    if (rc < 0) {
        (void)err_wrap(err, "%s '" STR_FMT "': %s", e->what, STR_ARG(e->name), key);
        return complain(e->config, jval_get(e->value, str_from(key)), err);
    }
    return 0;
}

/* A list of texts, each made from one element. */
static int read_strs(const struct reader *r, const struct entry *e, const char *key,
                     const struct str **ret, uint32_t *ret_n, struct err *err)
{
    const struct jval *list = jval_get(e->value, str_from(key));
    if (jval_kind(list) == JNULL) {
        return 0;
    }
    if (jval_kind(list) != JARR) {
        return complain_kind(e, key, list, "a list", err);
    }
    struct str *texts = ARENA_ARRAY(r->out, struct str, (size_t)list->n + 1);
    uint32_t n = 0;
    JVAL_EACH (list, v) {
        if (jval_kind(v) != JSTR || str_find_char(jval_str(v), '\0') != SIZE_MAX) {
            return complain_kind(e, key, v, "a list of strings", err);
        }
        texts[n++] = arena_str(r->out, jval_str(v));
    }
    *ret = texts;
    *ret_n = n;
    return 0;
}

/* The first file that knows the name counts. `inner` is where the entry's content hangs. */
static int entry_find(const struct reader *r, const char *list, const char *inner, struct str name,
                      struct entry *ret, struct err *err)
{
    *ret = (struct entry){ .what = inner, .name = name };
    for (uint32_t i = 0; i < r->n; i++) {
        const struct config *c = &r->configs[i];
        const struct jval *entries = jval_get(c->doc.root, str_from(list));
        if (jval_kind(entries) != JNULL && jval_kind(entries) != JARR) {
            (void)err_set(err, ERR_INVALID, "%s: found %s, want a list", list,
                          jkind_name(jval_kind(entries)));
            return complain(c, entries, err);
        }
        JVAL_EACH (entries, v) {
            if (!str_eq(jval_str(jval_get(v, STR("name"))), name)) {
                continue;
            }
            const struct jval *content = jval_get(v, str_from(inner));
            if (jval_kind(content) != JOBJ && jval_kind(content) != JNULL) {
                (void)err_set(err, ERR_INVALID, "%s '" STR_FMT "': found %s, want an object", inner,
                              STR_ARG(name), jkind_name(jval_kind(content)));
                return complain(c, content, err);
            }
            ret->config = c;
            ret->value = content != NULL ? content : v;
            return 0;
        }
    }
    return 0;
}

static struct str names_of(const struct reader *r, const char *list, struct arena *tmp)
{
    CLEANUP(buf_done)
    struct buf names = { 0 };
    for (uint32_t i = 0; i < r->n; i++) {
        const struct jval *entries = jval_get(r->configs[i].doc.root, str_from(list));
        JVAL_EACH (entries, v) {
            buf_printf(&names, "%s'" STR_FMT "'", names.n > 0 ? ", " : "",
                       STR_ARG(jval_str(jval_get(v, STR("name")))));
        }
    }
    return arena_str(tmp, names.n > 0 ? buf_str(&names) : STR("none"));
}

static struct str files_of(const struct reader *r, struct arena *tmp)
{
    CLEANUP(buf_done)
    struct buf names = { 0 };
    for (uint32_t i = 0; i < r->n; i++) {
        buf_printf(&names, "%s'" STR_FMT "'", i > 0 ? ", " : "", STR_ARG(r->configs[i].path));
    }
    return arena_str(tmp, buf_str(&names));
}

/* What a stranger's text may not name, and what it has to hold instead. */
struct refusal {
    const char *key;
    const char *what;
    const char *want;
};

static const struct refusal cluster_refusals[] = {
    { "certificate-authority", "a file", "certificate-authority-data" },
};

static const struct refusal user_refusals[] = {
    { "client-certificate", "a file", "client-certificate-data" },
    { "client-key", "a file", "client-key-data" },
    { "tokenFile", "a file", "token" },
    { "exec", "a program", "token or client-certificate-data" },
    { "auth-provider", "a plugin", "token or client-certificate-data" },
};

static int refuse_foreign(const struct reader *r, const struct entry *e,
                          const struct refusal *refusals, size_t n, struct err *err)
{
    for (size_t i = 0; i < n && r->source->foreign; i++) {
        const struct jval *v = jval_get(e->value, str_from(refusals[i].key));
        if (jval_kind(v) == JNULL || (jval_kind(v) == JSTR && jval_str(v).n == 0)) {
            continue;
        }
        (void)err_set(
            err, ERR_DENIED, "%s '" STR_FMT "': %s: names %s of the machine that reads it, want %s",
            e->what, STR_ARG(e->name), refusals[i].key, refusals[i].what, refusals[i].want);
        return complain(e->config, v, err);
    }
    return 0;
}

/* A stranger's server has to prove who it is, or anybody in between learns the credentials. */
static int refuse_insecure(const struct reader *r, const struct entry *e,
                           const struct cluster_access *a, struct err *err)
{
    struct str scheme;
    struct str rest;
    bool tls = str_cut(a->server, STR("://"), &scheme, &rest) && str_eq_fold(scheme, STR("https"));
    if (!r->source->foreign || r->source->allow_insecure || (tls && !a->insecure)) {
        return 0;
    }
    if (a->insecure) {
        (void)err_set(err, ERR_DENIED,
                      "cluster '" STR_FMT "': insecure-skip-tls-verify: is not allowed here, want "
                      "certificate-authority-data",
                      STR_ARG(e->name));
    } else {
        (void)err_set(err, ERR_DENIED,
                      "cluster '" STR_FMT "': server '" STR_FMT
                      "': want https://HOST[:PORT][/PATH]",
                      STR_ARG(e->name), STR_ARG(str_sub(a->server, 0, 200)));
    }
    return complain(e->config, e->value, err);
}

/* The host of a URL, without brackets and port. */
static struct str url_host(struct str url)
{
    struct str scheme;
    struct str rest;
    struct str host;
    if (!str_cut(url, STR("://"), &scheme, &rest)) {
        rest = url;
    }
    size_t end = 0;
    while (end < rest.n && str_find_char(STR("/?#\\"), rest.p[end]) == SIZE_MAX) {
        end++;
    }
    rest = str_sub(rest, 0, end);
    size_t user_end = str_rfind_char(rest, '@');
    rest = user_end == SIZE_MAX ? rest : str_sub(rest, user_end + 1, SIZE_MAX);
    struct str port;
    if (str_cut_prefix(rest, STR("["), &rest)) {
        (void)str_cut(rest, STR("]"), &host, &port); /* without ']' it is all host */
    } else {
        (void)str_cut(rest, STR(":"), &host, &port); /* without a port it is all host */
    }
    return host;
}

/* A stranger's server or proxy must not be a service of this machine: such services trust whoever
 * comes from here. What a name resolves to is checked when the connection is made. */
static int refuse_local(const struct reader *r, const struct entry *e, const char *key,
                        struct str url, struct err *err)
{
    if (!r->source->foreign || r->source->allow_local || !local_address_host(url_host(url))) {
        return 0;
    }
    (void)err_set(err, ERR_DENIED,
                  "cluster '" STR_FMT "': %s: host '" STR_FMT
                  "' is a loopback or link-local address, which is not allowed here",
                  STR_ARG(e->name), key, STR_ARG(str_sub(url_host(url), 0, 200)));
    return complain(e->config, jval_get(e->value, str_from(key)), err);
}

static int read_proxy(const struct reader *r, const struct entry *e, struct str proxy,
                      struct cluster_access *a, struct err *err)
{
    const struct jval *v = jval_get(e->value, STR("proxy-url"));
    /* The environment is the operator's own: its proxy may be a sidecar at loopback. */
    a->refuse_local = r->source->foreign && !r->source->allow_local;
    if (proxy.n == 0) {
        a->proxy_url = proxy_choose(a->server, source_env, (void *)(uintptr_t)r->source, r->out);
        a->refuse_local = a->refuse_local && a->proxy_url.n == 0;
        return 0;
    }
    if (r->source->foreign && !r->source->allow_proxy) {
        (void)err_set(err, ERR_DENIED, "cluster '" STR_FMT "': proxy-url: is not allowed here",
                      STR_ARG(e->name));
        return complain(e->config, v, err);
    }
    if (proxy_url(proxy, r->out, &a->proxy_url, err) < 0) {
        (void)err_wrap(err, "cluster '" STR_FMT "': proxy-url", STR_ARG(e->name));
        return complain(e->config, v, err);
    }
    return refuse_local(r, e, "proxy-url", a->proxy_url, err);
}

static int read_cluster(const struct reader *r, const struct entry *e, struct cluster_access *a,
                        struct err *err)
{
    struct str proxy = STR_NONE;
    int rc = refuse_foreign(r, e, cluster_refusals, ARRAY_LEN(cluster_refusals), err);
    rc = rc < 0 ? rc : read_str(r, e, "server", &a->server, err);
    rc = rc < 0 ? rc : read_str(r, e, "tls-server-name", &a->tls_server_name, err);
    rc = rc < 0 ? rc : read_bool(e, "insecure-skip-tls-verify", &a->insecure, err);
    rc = rc < 0 ? rc : read_pem(r, e, "certificate-authority", &a->ca_pem, err);
    rc = rc < 0 ? rc : read_str(r, e, "proxy-url", &proxy, err);
    if (rc < 0) {
        return rc;
    }
    if (a->server.n == 0) {
        (void)err_set(err, ERR_INVALID, "cluster '" STR_FMT "': has no server", STR_ARG(e->name));
        return complain(e->config, e->value, err);
    }
    rc = refuse_insecure(r, e, a, err);
    rc = rc < 0 ? rc : refuse_local(r, e, "server", a->server, err);
    if (rc < 0) {
        return rc;
    }
    if (a->insecure && a->ca_pem.n > 0) {
        (void)err_set(err, ERR_INVALID,
                      "cluster '" STR_FMT "': has both a certificate-authority and "
                      "insecure-skip-tls-verify, want one of them",
                      STR_ARG(e->name));
        return complain(e->config, e->value, err);
    }
    return read_proxy(r, e, proxy, a, err);
}

/* The plugin's own configuration hangs at the cluster. */
static void read_exec_config(const struct reader *r, const struct entry *cluster,
                             struct access_exec *exec)
{
    const struct jval *list = jval_get(cluster->value, STR("extensions"));
    if (jval_kind(list) != JARR) {
        return;
    }
    JVAL_EACH (list, v) {
        const struct jval *config = jval_get(v, STR("extension"));
        if (config != NULL &&
            str_eq(jval_str(jval_get(v, STR("name"))), STR("client.authentication.k8s.io/exec"))) {
            CLEANUP(buf_done)
            struct buf text = { 0 };
            struct json_writer w = json_writer_on(&text);
            jw_val(&w, config);
            exec->cluster_config = arena_str(r->out, buf_str(&text));
        }
    }
}

/* Our environment, then the plugin's own variables: of one name the last counts. */
static int read_exec_env(const struct reader *r, const struct entry *e, struct access_exec *exec,
                         struct err *err)
{
    const char *const *env = r->source->env != NULL ? r->source->env : (const char *const *)environ;
    const struct jval *list = jval_get(e->value, STR("env"));
    if (jval_kind(list) != JNULL && jval_kind(list) != JARR) {
        return complain_kind(e, "env", list, "a list", err);
    }
    size_t inherited = 0;
    while (env[inherited] != NULL) {
        inherited++;
    }
    size_t own = jval_kind(list) == JARR ? list->n : 0;
    struct str *all = ARENA_ARRAY(r->out, struct str, inherited + own + 1);
    uint32_t n = 0;
    for (size_t i = 0; i < inherited; i++) {
        all[n++] = arena_str(r->out, str_from(env[i]));
    }
    JVAL_EACH (own > 0 ? list : NULL, v) {
        struct str name = jval_str(jval_get(v, STR("name")));
        struct str value = jval_str(jval_get(v, STR("value")));
        if (name.n == 0 || str_find_char(name, '=') != SIZE_MAX ||
            str_find_char(name, '\0') != SIZE_MAX || str_find_char(value, '\0') != SIZE_MAX) {
            return complain_kind(e, "env", v, "a name and a value", err);
        }
        all[n++] = arena_printf(r->out, STR_FMT "=" STR_FMT, STR_ARG(name), STR_ARG(value));
    }
    exec->env = all;
    exec->env_n = n;
    return 0;
}

static int read_exec_words(const struct entry *e, struct str mode, struct access_exec *exec,
                           struct err *err)
{
    static const struct {
        struct str word;
        enum exec_interactive mode;
    } modes[] = {
        { STR_INIT("Never"), EXEC_INTERACTIVE_NEVER },
        { STR_INIT("IfAvailable"), EXEC_INTERACTIVE_IF_AVAILABLE },
        { STR_INIT("Always"), EXEC_INTERACTIVE_ALWAYS },
    };
    exec->interactive = EXEC_INTERACTIVE_IF_AVAILABLE;
    bool known = mode.n == 0;
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        if (str_eq(mode, modes[i].word)) {
            exec->interactive = modes[i].mode;
            known = true;
        }
    }
    if (!known) {
        (void)err_set(err, ERR_INVALID,
                      "user '" STR_FMT "': exec.interactiveMode: found '" STR_FMT
                      "', want Never, IfAvailable or Always",
                      STR_ARG(e->name), STR_ARG(mode));
        return complain(e->config, jval_get(e->value, STR("interactiveMode")), err);
    }
    if (exec->command.n == 0) {
        (void)err_set(err, ERR_INVALID, "user '" STR_FMT "': exec: has no command",
                      STR_ARG(e->name));
        return complain(e->config, e->value, err);
    }
    if (!str_eq(exec->api_version, STR("client.authentication.k8s.io/v1")) &&
        !str_eq(exec->api_version, STR("client.authentication.k8s.io/v1beta1"))) {
        (void)err_set(err, ERR_INVALID,
                      "user '" STR_FMT "': exec.apiVersion: found '" STR_FMT
                      "', want client.authentication.k8s.io/v1 or …/v1beta1",
                      STR_ARG(e->name), STR_ARG(exec->api_version));
        return complain(e->config, e->value, err);
    }
    return 0;
}

static int read_exec(const struct reader *r, const struct entry *user, const struct entry *cluster,
                     struct cluster_access *a, struct err *err)
{
    struct access_exec *exec = &a->exec;
    struct entry e = *user;
    e.value = jval_get(user->value, STR("exec"));
    if (jval_kind(e.value) == JNULL) {
        return 0;
    }
    if (jval_kind(e.value) != JOBJ) {
        return complain_kind(user, "exec", e.value, "an object", err);
    }
    struct str mode = STR_NONE;
    const struct jval *hint = jval_get(e.value, STR("installHint"));
    int rc = read_str(r, &e, "command", &exec->command, err);
    rc = rc < 0 ? rc : read_str(r, &e, "apiVersion", &exec->api_version, err);
    rc = rc < 0 ? rc : read_str(r, &e, "interactiveMode", &mode, err);
    rc = rc < 0 ? rc : read_bool(&e, "provideClusterInfo", &exec->provide_cluster_info, err);
    rc = rc < 0 ? rc : read_strs(r, &e, "args", &exec->args, &exec->args_n, err);
    rc = rc < 0 ? rc : read_exec_env(r, &e, exec, err);
    rc = rc < 0 ? rc : read_exec_words(&e, mode, exec, err);
    if (rc < 0) {
        return rc;
    }
    exec->install_hint = arena_str(r->out, str_trim(jval_str(hint))); /* may have many lines */
    if (str_find_char(exec->command, '/') != SIZE_MAX) {
        exec->command = path_beside(r, e.config, exec->command);
    }
    read_exec_config(r, cluster, exec);
    /* A token at hand needs no plugin: client-go's order. */
    if (a->token.n > 0 || a->token_file.n > 0 || a->username.n > 0) {
        *exec = (struct access_exec){ 0 };
    }
    return 0;
}

static int read_groups(const struct reader *r, const struct entry *e, struct cluster_access *a,
                       struct err *err)
{
    int rc = read_strs(r, e, "as-groups", &a->impersonate_groups, &a->impersonate_groups_n, err);
    for (uint32_t i = 0; rc == 0 && i < a->impersonate_groups_n; i++) {
        if (!is_one_line(a->impersonate_groups[i])) {
            (void)err_set(err, ERR_INVALID,
                          "%s '" STR_FMT "': as-groups: want one line of text each", e->what,
                          STR_ARG(e->name));
            rc = complain(e->config, jval_get(e->value, STR("as-groups")), err);
        }
    }
    return rc;
}

static int read_user(const struct reader *r, const struct entry *e, const struct entry *cluster,
                     struct cluster_access *a, struct err *err)
{
    int rc = refuse_foreign(r, e, user_refusals, ARRAY_LEN(user_refusals), err);
    rc = rc < 0 ? rc : read_pem(r, e, "client-certificate", &a->cert_pem, err);
    rc = rc < 0 ? rc : read_pem(r, e, "client-key", &a->key_pem, err);
    rc = rc < 0 ? rc : read_str(r, e, "token", &a->token, err);
    rc = rc < 0 ? rc : read_str(r, e, "tokenFile", &a->token_file, err);
    rc = rc < 0 ? rc : read_str(r, e, "username", &a->username, err);
    rc = rc < 0 ? rc : read_str(r, e, "password", &a->password, err);
    rc = rc < 0 ? rc : read_str(r, e, "as", &a->impersonate_user, err);
    rc = rc < 0 ? rc : read_str(r, e, "as-uid", &a->impersonate_uid, err);
    rc = rc < 0 ? rc : read_groups(r, e, a, err);
    rc = rc < 0 ? rc : read_exec(r, e, cluster, a, err);
    if (rc < 0) {
        return rc;
    }
    a->token_file = path_beside(r, e->config, a->token_file);
    static const char *const unsupported[] = { "auth-provider", "as-user-extra" };
    for (size_t i = 0; i < ARRAY_LEN(unsupported); i++) {
        const struct jval *v = jval_get(e->value, str_from(unsupported[i]));
        if (jval_kind(v) != JNULL) {
            (void)err_set(err, ERR_INVALID, "user '" STR_FMT "': %s is not supported%s",
                          STR_ARG(e->name), unsupported[i], i == 0 ? ", use an exec plugin" : "");
            return complain(e->config, v, err);
        }
    }
    if ((a->token.n > 0 || a->token_file.n > 0) && a->username.n > 0) {
        (void)err_set(err, ERR_INVALID, "user '" STR_FMT "': has token and username, want one",
                      STR_ARG(e->name));
        return complain(e->config, e->value, err);
    }
    return 0;
}

static int missing(const struct reader *r, const char *sentence, struct str name, const char *list,
                   struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    return err_set(
        err, ERR_NOTFOUND, "kubeconfig " STR_FMT ": %s '" STR_FMT "' (there are: " STR_FMT ")",
        STR_ARG(files_of(r, &tmp)), sentence, STR_ARG(name), STR_ARG(names_of(r, list, &tmp)));
}

/* From the context's name to everything it stands for. */
static int read_context(const struct reader *r, struct str name, struct cluster_access *a,
                        struct err *err)
{
    struct entry context;
    struct entry cluster;
    struct entry user;
    struct str cluster_name = STR_NONE;
    struct str user_name = STR_NONE;
    int rc = entry_find(r, "contexts", "context", name, &context, err);
    if (rc < 0) {
        return rc;
    }
    if (context.value == NULL) {
        return missing(r, "no context", name, "contexts", err);
    }
    rc = read_str(r, &context, "cluster", &cluster_name, err);
    rc = rc < 0 ? rc : read_str(r, &context, "user", &user_name, err);
    rc = rc < 0 ? rc : read_str(r, &context, "namespace", &a->ns, err);
    rc = rc < 0 ? rc : entry_find(r, "clusters", "cluster", cluster_name, &cluster, err);
    rc = rc < 0 ? rc : entry_find(r, "users", "user", user_name, &user, err);
    if (rc < 0) {
        return rc;
    }
    if (cluster.value == NULL) {
        return missing(r, "the context names a cluster that is not there:", cluster_name,
                       "clusters", err);
    }
    rc = read_cluster(r, &cluster, a, err);
    if (rc < 0 || (user_name.n == 0 && r->source->token.n == 0)) {
        return rc;
    }
    if (r->source->token.n > 0) {
        if (!is_one_line(r->source->token)) {
            return err_set(err, ERR_INVALID, "token: want one line of text");
        }
        a->token = arena_str(r->out, r->source->token);
        return 0; /* the user is not asked, however it would prove itself */
    }
    if (user.value == NULL) {
        return missing(r, "the context names a user that is not there:", user_name, "users", err);
    }
    return read_user(r, &user, &cluster, a, err);
}

static int read_all(struct reader *r, struct cluster_access *a, struct err *err)
{
    struct str name = r->source->context;
    for (uint32_t i = 0; i < r->n; i++) {
        const struct config *c = &r->configs[i];
        enum jkind kind = jval_kind(c->doc.root);
        if (kind != JOBJ && kind != JNULL) {
            (void)err_set(err, ERR_INVALID, "found %s, want an object", jkind_name(kind));
            return complain(c, c->doc.root, err);
        }
        if (name.n == 0) {
            name = jval_str(jval_get(c->doc.root, STR("current-context")));
        }
    }
    if (name.n == 0) {
        CLEANUP(arena_done)
        struct arena tmp = { 0 };
        return err_set(err, ERR_INVALID,
                       "kubeconfig " STR_FMT
                       ": has no current-context, and none was asked for (there are: " STR_FMT ")",
                       STR_ARG(files_of(r, &tmp)), STR_ARG(names_of(r, "contexts", &tmp)));
    }
    a->name = arena_str(r->out, name);
    return read_context(r, a->name, a, err);
}

int kubeconfig_parse(const struct kubeconfig_source *source, const struct kubeconfig_text *texts,
                     uint32_t n, struct arena *out, struct cluster_access *ret, struct err *err)
{
    ASSERT(n <= KUBECONFIG_FILES_MAX);
    CLEANUP(arena_wipe)
    struct arena tmp = { 0 };
    struct reader *r = ARENA_NEW(&tmp, struct reader);
    r->source = source;
    r->out = out;
    for (uint32_t i = 0; i < n; i++) {
        struct config *c = &r->configs[r->n++];
        c->path = texts[i].path;
        int rc = source->foreign ? ydoc_parse_plain(texts[i].text, &tmp, &c->doc, err)
                                 : ydoc_parse(texts[i].text, &tmp, &c->doc, err);
        if (rc < 0) {
            return err_wrap(err, "kubeconfig '" STR_FMT "'", STR_ARG(c->path));
        }
    }
    struct cluster_access access = { 0 };
    int rc = read_all(r, &access, err);
    if (rc < 0) {
        return rc;
    }
    *ret = access;
    return 0;
}

/* The files of a list separated by ':'. One that is not there is passed over if `lenient`. */
static int load_files(const struct kubeconfig_source *source, struct str list, bool lenient,
                      struct arena *out, struct cluster_access *ret, struct err *err)
{
    CLEANUP(arena_wipe)
    struct arena tmp = { 0 };
    struct kubeconfig_text texts[KUBECONFIG_FILES_MAX];
    uint32_t n = 0;
    struct str all = list;
    struct str path;
    while (list.n > 0 && str_split_next(&list, lenient ? ':' : '\0', &path)) {
        if (path.n == 0) {
            continue;
        }
        if (n == KUBECONFIG_FILES_MAX) {
            return err_set(err, ERR_LIMIT, "KUBECONFIG names more than %u files",
                           KUBECONFIG_FILES_MAX);
        }
        texts[n].path = path;
        int rc = file_read(path, CONFIG_FILE_BYTES_MAX, &tmp, &texts[n].text, err);
        if (rc < 0 && !(lenient && err->os == ENOENT)) {
            return err_wrap(err, "kubeconfig");
        }
        n += rc == 0 ? 1 : 0;
    }
    if (n == 0) {
        return err_set(err, ERR_NOTFOUND, "kubeconfig: none of the files exists: '" STR_FMT "'",
                       STR_ARG(all));
    }
    return kubeconfig_parse(source, texts, n, out, ret, err);
}

/* The service account of the pod we run in. 0, 1 = we run in none, or an error. */
static int load_in_cluster(const struct kubeconfig_source *source, struct arena *out,
                           struct cluster_access *ret, struct err *err)
{
    struct str host = env_of(source, "KUBERNETES_SERVICE_HOST");
    struct str port = env_of(source, "KUBERNETES_SERVICE_PORT");
    struct str dir = source->service_account_dir.n > 0 ? source->service_account_dir
                                                       : STR(KUBECONFIG_SERVICE_ACCOUNT);
    struct cluster_access a = { .in_cluster = true, .name = STR("in-cluster") };
    struct file_mark mark;
    a.token_file = arena_printf(out, STR_FMT "/token", STR_ARG(dir));
    if (host.n == 0 || port.n == 0 || file_mark(a.token_file, &mark, err) < 0) {
        return 1;
    }
    bool v6 = str_find_char(host, ':') != SIZE_MAX;
    a.server = arena_printf(out, "https://%s" STR_FMT "%s:" STR_FMT, v6 ? "[" : "", STR_ARG(host),
                            v6 ? "]" : "", STR_ARG(port));
    struct str path = arena_printf(out, STR_FMT "/ca.crt", STR_ARG(dir));
    int rc = file_read(path, CREDENTIAL_FILE_BYTES_MAX, out, &a.ca_pem, err);
    if (rc < 0) {
        return err_wrap(err, "service account");
    }
    struct str ns = STR_NONE;
    struct err ignored = { 0 };
    path = arena_printf(out, STR_FMT "/namespace", STR_ARG(dir));
    if (file_read(path, CREDENTIAL_FILE_BYTES_MAX, out, &ns, &ignored) == 0) {
        a.ns = arena_str(out, str_trim(ns)); /* who needs it complains when it is empty */
    }
    a.proxy_url = proxy_choose(a.server, source_env, (void *)(uintptr_t)source, out);
    *ret = a;
    return 0;
}

int kubeconfig_load(const struct kubeconfig_source *source, struct arena *out,
                    struct cluster_access *ret, struct err *err)
{
    if (source->path.n > 0) {
        return load_files(source, source->path, false, out, ret, err);
    }
    struct str list = env_of(source, "KUBECONFIG");
    if (list.n > 0) {
        return load_files(source, list, true, out, ret, err);
    }
    int rc = load_in_cluster(source, out, ret, err);
    if (rc <= 0) {
        return rc;
    }
    struct str home = env_of(source, "HOME");
    if (home.n == 0) {
        return err_set(err, ERR_NOTFOUND,
                       "no cluster: no --kubeconfig, no KUBECONFIG, no service account, no HOME");
    }
    struct str path = arena_printf(out, STR_FMT "/.kube/config", STR_ARG(home));
    struct file_mark mark;
    if (file_mark(path, &mark, err) < 0) {
        return err_wrap(err, "no cluster: no --kubeconfig, no KUBECONFIG, no service account");
    }
    return load_files(source, path, false, out, ret, err);
}
