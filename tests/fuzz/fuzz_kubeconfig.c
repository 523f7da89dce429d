/* What was understood of a kubeconfig, written down anew, is understood in the same way; and a
 * stranger's is understood in that way or refused. */
#include <openssl/evp.h>

#include "base/utf8.h"
#include "format/json_writer.h"
#include "host/kubeconfig.h"
#include "tests/fuzz/target.h"

static const char *const env[] = { "HOME=/home/nobody", "HTTPS_PROXY=proxy:3128",
                                   "NO_PROXY=.a,10.0.0.0/8", NULL };

static void pair(struct json_writer *w, const char *key, struct str value)
{
    if (value.n > 0) {
        jw_pair(w, key, value);
    }
}

static void pair_base64(struct json_writer *w, struct arena *tmp, const char *key, struct str value)
{
    char *code = arena_alloc(tmp, value.n * 2 + 8);
    int n = EVP_EncodeBlock((unsigned char *)code, (const unsigned char *)value.p, (int)value.n);
    pair(w, key, (struct str){ .p = code, .n = (size_t)n });
}

static void list(struct json_writer *w, const char *key, const struct str *items, uint32_t n)
{
    jw_key(w, str_from(key));
    jw_arr(w);
    for (uint32_t i = 0; i < n; i++) {
        jw_str(w, items[i]);
    }
    jw_arr_end(w);
}

static void write_exec(struct json_writer *w, const struct access_exec *exec)
{
    static const char *const modes[] = { "Never", "IfAvailable", "Always" };
    if (exec->command.n == 0) {
        return;
    }
    jw_key(w, STR("exec"));
    jw_obj(w);
    jw_pair(w, "command", exec->command);
    jw_pair(w, "apiVersion", exec->api_version);
    jw_pair(w, "interactiveMode", str_from(modes[exec->interactive]));
    pair(w, "installHint", exec->install_hint);
    jw_key(w, STR("provideClusterInfo"));
    jw_bool(w, exec->provide_cluster_info);
    list(w, "args", exec->args, exec->args_n);
    jw_key(w, STR("env"));
    jw_arr(w);
    for (uint32_t i = ARRAY_LEN(env) - 1; i < exec->env_n; i++) {
        struct str name;
        struct str value;
        (void)str_cut(exec->env[i], STR("="), &name, &value); /* it was joined with one */
        jw_obj(w);
        jw_pair(w, "name", name);
        jw_pair(w, "value", value);
        jw_obj_end(w);
    }
    jw_arr_end(w);
    jw_obj_end(w);
}

static void entry(struct json_writer *w, const char *plural, const char *inner)
{
    jw_key(w, str_from(plural));
    jw_arr(w);
    jw_obj(w);
    jw_pair(w, "name", STR("n"));
    jw_key(w, str_from(inner));
    jw_obj(w);
}

static void entry_end(struct json_writer *w)
{
    jw_obj_end(w);
    jw_obj_end(w);
    jw_arr_end(w);
}

static void write_config(const struct cluster_access *a, struct arena *tmp, struct buf *out)
{
    struct json_writer w = json_writer_on(out);
    jw_obj(&w);
    jw_pair(&w, "current-context", STR("n"));
    entry(&w, "contexts", "context");
    jw_pair(&w, "cluster", STR("n"));
    jw_pair(&w, "user", STR("n"));
    pair(&w, "namespace", a->ns);
    entry_end(&w);
    entry(&w, "clusters", "cluster");
    jw_pair(&w, "server", a->server);
    pair(&w, "tls-server-name", a->tls_server_name);
    pair(&w, "proxy-url", a->proxy_url);
    pair_base64(&w, tmp, "certificate-authority-data", a->ca_pem);
    jw_key(&w, STR("insecure-skip-tls-verify"));
    jw_bool(&w, a->insecure);
    entry_end(&w);
    entry(&w, "users", "user");
    pair_base64(&w, tmp, "client-certificate-data", a->cert_pem);
    pair_base64(&w, tmp, "client-key-data", a->key_pem);
    pair(&w, "token", a->token);
    pair(&w, "tokenFile", a->token_file);
    pair(&w, "username", a->username);
    pair(&w, "password", a->password);
    pair(&w, "as", a->impersonate_user);
    pair(&w, "as-uid", a->impersonate_uid);
    list(&w, "as-groups", a->impersonate_groups, a->impersonate_groups_n);
    write_exec(&w, &a->exec);
    entry_end(&w);
    jw_obj_end(&w);
}

static void check_same_list(const struct str *a, uint32_t a_n, const struct str *b, uint32_t b_n)
{
    ASSERT(a_n == b_n);
    for (uint32_t i = 0; i < a_n; i++) {
        ASSERT(str_eq(a[i], b[i]));
    }
}

static void check_same(const struct cluster_access *a, const struct cluster_access *b)
{
    const struct str texts[][2] = {
        { a->server, b->server },
        { a->tls_server_name, b->tls_server_name },
        { a->proxy_url, b->proxy_url },
        { a->ca_pem, b->ca_pem },
        { a->cert_pem, b->cert_pem },
        { a->key_pem, b->key_pem },
        { a->token, b->token },
        { a->token_file, b->token_file },
        { a->username, b->username },
        { a->password, b->password },
        { a->impersonate_user, b->impersonate_user },
        { a->impersonate_uid, b->impersonate_uid },
        { a->ns, b->ns },
        { a->exec.command, b->exec.command },
        { a->exec.api_version, b->exec.api_version },
        { a->exec.install_hint, b->exec.install_hint },
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        ASSERT(str_eq(texts[i][0], texts[i][1]));
        ASSERT(texts[i][0].n == 0 || texts[i][0].p[texts[i][0].n] == '\0');
    }
    ASSERT(a->insecure == b->insecure);
    ASSERT(a->exec.interactive == b->exec.interactive);
    ASSERT(a->exec.provide_cluster_info == b->exec.provide_cluster_info);
    check_same_list(a->impersonate_groups, a->impersonate_groups_n, b->impersonate_groups,
                    b->impersonate_groups_n);
    check_same_list(a->exec.args, a->exec.args_n, b->exec.args, b->exec.args_n);
    check_same_list(a->exec.env, a->exec.env_n, b->exec.env, b->exec.env_n);
}

static void check_foreign(struct str text, int own, const struct cluster_access *access)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct kubeconfig_source source = { .env = env, .foreign = true };
    struct kubeconfig_text file = { .path = STR("config"), .text = text };
    struct cluster_access foreign = { 0 };
    if (kubeconfig_parse(&source, &file, 1, &a, &foreign, &err) < 0) {
        ASSERT(err.msg[0] != '\0');
        return;
    }
    ASSERT(own == 0);
    check_same(access, &foreign);
    ASSERT(foreign.exec.command.n == 0);
    ASSERT(foreign.token_file.n == 0);
    ASSERT(!foreign.insecure);
    ASSERT(str_eq_fold(str_sub(foreign.server, 0, 8), STR("https://")));
    source.token = STR("another");
    foreign = (struct cluster_access){ 0 };
    int r = kubeconfig_parse(&source, &file, 1, &a, &foreign, &err);
    ASSERT(r == 0);
    ASSERT(str_eq(foreign.token, source.token));
    ASSERT(foreign.cert_pem.n == 0 && foreign.username.n == 0 && foreign.impersonate_user.n == 0);
}

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct kubeconfig_source source = { .env = env, .no_files = true };
    struct kubeconfig_text file = { .path = STR("config"), .text = text };
    struct cluster_access access = { 0 };
    int r = kubeconfig_parse(&source, &file, 1, &a, &access, &err);
    check_foreign(text, r, &access);
    if (r < 0) {
        ASSERT(err.msg[0] != '\0');
        ASSERT(access.server.p == NULL); /* untouched */
        return;
    }
    ASSERT(access.server.n > 0);
    ASSERT(access.exec.command.n == 0 || access.token.n == 0);
    if (utf8_find_invalid(text) != SIZE_MAX || str_contains(text, STR("!"))) {
        return; /* !!binary makes texts that JSON cannot hold */
    }
    CLEANUP(buf_done)
    struct buf again = { 0 };
    write_config(&access, &a, &again);
    struct cluster_access second = { 0 };
    file.text = buf_str(&again);
    r = kubeconfig_parse(&source, &file, 1, &a, &second, &err);
    ASSERT(r == 0);
    check_same(&access, &second);
}
