#include "host/kubeconfig.h"

#include <sys/stat.h>
#include <unistd.h>

#include "tests/check.h"

static const char *const no_env[] = { NULL };

/* A folder of its own for each test, gone at its end. */
struct story {
    struct arena memory;
    char dir[64];
    const char *files[16];
    uint32_t files_n;
    struct kubeconfig_source source;
    struct cluster_access access;
    struct err err;
};

static void story_begin(struct story *s)
{
    *s = (struct story){ .dir = "/tmp/drydock-kubeconfig-XXXXXX", .source = { .env = no_env } };
    CHECK(mkdtemp(s->dir) != NULL);
    s->source.service_account_dir = STR("/nonexistent");
}

static void story_end(struct story *s)
{
    for (uint32_t i = s->files_n; i > 0; i--) {
        (void)remove(s->files[i - 1]);
    }
    CHECK_EQ(rmdir(s->dir), 0);
    arena_done(&s->memory);
}

static struct str in_dir(struct story *s, const char *name)
{
    return arena_printf(&s->memory, "%s/%s", s->dir, name);
}

static struct str put(struct story *s, const char *name, const char *text)
{
    struct str path = in_dir(s, name);
    FILE *f = fopen(path.p, "w");
    CHECK(f != NULL);
    (void)fputs(text, f);
    (void)fclose(f);
    s->files[s->files_n++] = path.p;
    return path;
}

static int load(struct story *s)
{
    s->err = (struct err){ 0 };
    return kubeconfig_load(&s->source, &s->memory, &s->access, &s->err);
}

static const char full[] = "apiVersion: v1\n"
                           "kind: Config\n"
                           "current-context: one\n"
                           "contexts:\n"
                           "- name: one\n"
                           "  context: {cluster: c1, user: u1, namespace: kube-system}\n"
                           "- name: two\n"
                           "  context:\n"
                           "    cluster: c2\n"
                           "    user: u2\n"
                           "- {name: three, context: {cluster: c2}}\n"
                           "- {name: four, context: {cluster: c1, user: u4}}\n"
                           "clusters:\n"
                           "- name: c1\n"
                           "  cluster:\n"
                           "    server: https://10.0.0.1:6443\n"
                           "    certificate-authority-data: Y2EgcGVt\n"
                           "    tls-server-name: api.example\n"
                           "    proxy-url: socks5://proxy:1080\n"
                           "    extensions:\n"
                           "    - name: client.authentication.k8s.io/exec\n"
                           "      extension: {audience: x}\n"
                           "- name: c2\n"
                           "  cluster:\n"
                           "    server: http://localhost:8080\n"
                           "    insecure-skip-tls-verify: true\n"
                           "users:\n"
                           "- name: u1\n"
                           "  user:\n"
                           "    client-certificate-data: Y2VydA==\n"
                           "    client-key: key.pem\n"
                           "    as: jane\n"
                           "    as-groups: [a, b]\n"
                           "- name: u2\n"
                           "  user:\n"
                           "    token: secret\n"
                           "    tokenFile: token\n"
                           "- name: u4\n"
                           "  user:\n"
                           "    exec:\n"
                           "      apiVersion: client.authentication.k8s.io/v1\n"
                           "      command: ./bin/plugin\n"
                           "      args: [get, token]\n"
                           "      env:\n"
                           "      - {name: A, value: \"2\"}\n"
                           "      interactiveMode: Never\n"
                           "      provideClusterInfo: true\n"
                           "      installHint: |\n"
                           "        install it\n"
                           "        from somewhere\n";

TEST(kubeconfig_reads_all_it_knows)
{
    struct story s;
    story_begin(&s);
    static const char *const env[] = { "A=1", "HOME=/h", NULL };
    s.source.env = env;
    s.source.path = put(&s, "config", full);
    (void)put(&s, "key.pem", "key pem\n");
    CHECK_EQ(load(&s), 0);
    CHECK_STR(s.access.name, "one");
    CHECK_STR(s.access.ns, "kube-system");
    CHECK_STR(s.access.server, "https://10.0.0.1:6443");
    CHECK_STR(s.access.ca_pem, "ca pem");
    CHECK_STR(s.access.tls_server_name, "api.example");
    CHECK_STR(s.access.proxy_url, "socks5h://proxy:1080");
    CHECK_STR(s.access.cert_pem, "cert");
    CHECK_STR(s.access.key_pem, "key pem\n");
    CHECK_STR(s.access.impersonate_user, "jane");
    CHECK_EQ(s.access.impersonate_groups_n, 2);
    CHECK_STR(s.access.impersonate_groups[1], "b");
    CHECK(!s.access.insecure && !s.access.in_cluster);

    s.source.context = STR("two");
    CHECK_EQ(load(&s), 0);
    CHECK_STR(s.access.server, "http://localhost:8080");
    CHECK(s.access.insecure);
    CHECK_STR(s.access.token, "secret");
    CHECK_STR(s.access.token_file, in_dir(&s, "token"));
    CHECK_EQ(s.access.proxy_url.n, 0);

    s.source.context = STR("three");
    CHECK_EQ(load(&s), 0);
    CHECK_EQ(s.access.token.n, 0);

    s.source.context = STR("four");
    CHECK_EQ(load(&s), 0);
    const struct access_exec *exec = &s.access.exec;
    CHECK_STR(exec->command, in_dir(&s, "./bin/plugin"));
    CHECK_EQ(exec->args_n, 2);
    CHECK_STR(exec->args[1], "token");
    CHECK_EQ(exec->env_n, 3);
    CHECK_STR(exec->env[1], "HOME=/h");
    CHECK_STR(exec->env[2], "A=2");
    CHECK(exec->provide_cluster_info);
    CHECK_EQ(exec->interactive, EXEC_INTERACTIVE_NEVER);
    CHECK_STR(exec->install_hint, "install it\nfrom somewhere");
    CHECK_STR(exec->cluster_config, "{\"audience\":\"x\"}");
    story_end(&s);
}

/* What is wrong, and what is said: the file's name stands before it. */
static const struct {
    const char *text;
    const char *context;
    const char *says;
} wrong[] = {
    { "a: [", "", ":" },
    { "[]", "", "': line 1: found a list, want an object" },
    { "", "", "': has no current-context, and none was asked for (there are: none)" },
    { full, "nine", "': no context 'nine' (there are: 'one', 'two', 'three', 'four')" },
    { "contexts:\n- name: x\n  context: {cluster: k}", "x",
      "': the context names a cluster that is not there: 'k' (there are: none)" },
    { "contexts:\n- name: x\n  context: {cluster: k, user: z}\nclusters:\n- name: k\n  cluster: "
      "{server: 'http://a'}",
      "x", "': the context names a user that is not there: 'z' (there are: none)" },
    { "contexts:\n- name: x\n  context: {cluster: k}\nclusters:\n- name: k\n  cluster: {}", "x",
      "': line 6: cluster 'k': has no server" },
    { "contexts:\n- name: x\n  context: {cluster: k}\nclusters:\n- name: k\n  cluster:\n    "
      "server: 7",
      "x", "': line 7: cluster 'k': server: found a number, want a string" },
    { "contexts:\n- name: x\n  context: {cluster: k}\nclusters:\n- name: k\n  cluster:\n    "
      "server: "
      "https://a\n    certificate-authority-data: '*'",
      "x", "': line 8: cluster 'k': certificate-authority-data: is not base64" },
    { "contexts:\n- name: x\n  context: {cluster: k}\nclusters:\n- name: k\n  cluster:\n    "
      "server: "
      "https://a\n    insecure-skip-tls-verify: 'yes'",
      "x", "': line 8: cluster 'k': insecure-skip-tls-verify: found a string, want true or false" },
    { "contexts:\n- name: x\n  context: {cluster: k}\nclusters:\n- name: k\n  cluster:\n    "
      "server: "
      "https://a\n    proxy-url: 'gopher://b'",
      "x",
      "': line 8: cluster 'k': proxy-url: found 'gopher://b', want http://HOST:PORT, "
      "https://HOST:PORT or socks5://HOST:PORT, without a path" },
    { "contexts:\n- name: x\n  context: {cluster: k}\nclusters:\n- name: k\n  cluster:\n    "
      "server: "
      "https://a\n    certificate-authority-data: YQ==\n    insecure-skip-tls-verify: true",
      "x",
      "': line 7: cluster 'k': has both a certificate-authority and insecure-skip-tls-verify, want "
      "one of them" },
    { "contexts: 3", "x", "': line 1: contexts: found a number, want a list" },
    { "contexts:\n- {name: x, context: {cluster: k, user: z}}\nclusters:\n- {name: k, cluster: "
      "{server: 'https://a'}}\nusers:\n- name: z\n  user:\n    auth-provider: {name: gcp}",
      "x", "': line 8: user 'z': auth-provider is not supported, use an exec plugin" },
    { "contexts:\n- {name: x, context: {cluster: k, user: z}}\nclusters:\n- {name: k, cluster: "
      "{server: 'https://a'}}\nusers:\n- name: z\n  user:\n    exec: {command: a, apiVersion: "
      "client.authentication.k8s.io/v1alpha1}",
      "x",
      "': line 8: user 'z': exec.apiVersion: found 'client.authentication.k8s.io/v1alpha1', want "
      "client.authentication.k8s.io/v1 or …/v1beta1" },
    { "contexts:\n- {name: x, context: {cluster: k, user: z}}\nclusters:\n- {name: k, cluster: "
      "{server: 'https://a'}}\nusers:\n- name: z\n  user:\n    token: \"a\\nb\"",
      "x", "': line 8: user 'z': token: want one line of text" },
    { "contexts:\n- {name: x, context: {cluster: k, user: z}}\nclusters:\n- {name: k, cluster: "
      "{server: 'https://a'}}\nusers:\n- name: z\n  user:\n    as-groups: [a, \"b\\r\\nX: c\"]",
      "x", "': line 8: user 'z': as-groups: want one line of text each" },
};

TEST(kubeconfig_says_what_is_wrong_and_where)
{
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct story s;
        story_begin(&s);
        s.source.path = put(&s, "config", wrong[i].text);
        s.source.context = str_from(wrong[i].context);
        s.access.name = STR("untouched");
        CHECK(load(&s) < 0);
        struct str start = arena_printf(&s.memory, "kubeconfig '" STR_FMT, STR_ARG(s.source.path));
        CHECK(str_starts(str_from(s.err.msg), start));
        if (i > 0) {
            CHECK_STR(str_sub(str_from(s.err.msg), start.n, SIZE_MAX), wrong[i].says);
        } else {
            CHECK(str_contains(str_from(s.err.msg), STR("line ")));
        }
        CHECK_STR(s.access.name, "untouched");
        story_end(&s);
    }
}

TEST(kubeconfig_merges_a_list_and_the_first_file_wins)
{
    struct story s;
    story_begin(&s);
    struct str a = put(&s, "a",
                       "current-context: x\n"
                       "contexts:\n- {name: x, context: {cluster: c, user: u}}\n"
                       "users:\n- {name: u, user: {token: first}}\n");
    struct str b = put(&s, "b",
                       "current-context: k\n"
                       "contexts:\n- {name: x, context: {cluster: other}}\n"
                       "clusters:\n- {name: c, cluster: {server: 'https://c'}}\n"
                       "users:\n- {name: u, user: {token: second}}\n");
    const char *env[] = {
        arena_printf(&s.memory, "KUBECONFIG=%s/missing::%s:%s", s.dir, a.p, b.p).p, NULL
    };
    s.source.env = env;
    CHECK_EQ(load(&s), 0);
    CHECK_STR(s.access.server, "https://c");
    CHECK_STR(s.access.token, "first");
    const char *none[] = { arena_printf(&s.memory, "KUBECONFIG=%s/missing", s.dir).p, NULL };
    s.source.env = none;
    CHECK_EQ(load(&s), -ERR_NOTFOUND);
    CHECK(str_contains(str_from(s.err.msg), STR("none of the files exists: '")));
    story_end(&s);
}

TEST(kubeconfig_follows_the_order_of_the_contract)
{
    static const char minimal[] =
        "current-context: x\ncontexts:\n- {name: x, context: {cluster: c}}\n"
        "clusters:\n- {name: c, cluster: {server: 'http://%s'}}\n";
    struct story s;
    story_begin(&s);
    CHECK_EQ(mkdir(in_dir(&s, ".kube").p, 0700), 0);
    s.files[s.files_n++] = in_dir(&s, ".kube").p;
    char text[256];
    (void)snprintf(text, sizeof(text), minimal, "home");
    (void)put(&s, ".kube/config", text);
    (void)snprintf(text, sizeof(text), minimal, "env");
    struct str by_env = put(&s, "env", text);
    (void)snprintf(text, sizeof(text), minimal, "flag");
    struct str by_flag = put(&s, "flag", text);
    const char *env[] = {
        arena_printf(&s.memory, "HOME=%s", s.dir).p,
        "KUBERNETES_SERVICE_HOST=fd00::1",
        "KUBERNETES_SERVICE_PORT=443",
        "https_proxy=http://proxy",
        arena_printf(&s.memory, "KUBECONFIG=%s", by_env.p).p,
        NULL,
    };
    s.source.env = env;
    s.source.path = by_flag;
    CHECK_EQ(load(&s), 0);
    CHECK_STR(s.access.server, "http://flag");
    s.source.path = STR_NONE;
    CHECK_EQ(load(&s), 0);
    CHECK_STR(s.access.server, "http://env");
    env[4] = NULL;
    CHECK_EQ(load(&s), 0);
    CHECK_STR(s.access.server, "http://home"); /* there is no token: we run in no pod */

    (void)put(&s, "token", "t");
    s.source.service_account_dir = str_from(s.dir);
    CHECK(load(&s) < 0);
    CHECK(str_starts(str_from(s.err.msg), STR("service account: file '")));
    (void)put(&s, "ca.crt", "pem");
    (void)put(&s, "namespace", "ns\n");
    CHECK_EQ(load(&s), 0);
    CHECK(s.access.in_cluster);
    CHECK_STR(s.access.server, "https://[fd00::1]:443");
    CHECK_STR(s.access.ca_pem, "pem");
    CHECK_STR(s.access.ns, "ns");
    CHECK_STR(s.access.token_file, in_dir(&s, "token"));
    CHECK_STR(s.access.proxy_url, "http://proxy");
    story_end(&s);
}

TEST(kubeconfig_names_what_it_cannot_read)
{
    struct story s;
    story_begin(&s);
    s.source.path = in_dir(&s, "missing");
    CHECK_EQ(load(&s), -ERR_NOTFOUND);
    CHECK(str_ends(str_from(s.err.msg), STR("/missing': No such file or directory")));
    s.source.path = str_from(s.dir);
    CHECK(load(&s) < 0);
    CHECK(str_ends(str_from(s.err.msg), STR("': is a directory")));
    s.source.path = STR_NONE;
    CHECK_EQ(load(&s), -ERR_NOTFOUND);
    CHECK(str_starts(str_from(s.err.msg), STR("no cluster: ")));
    s.source.path = put(&s, "config",
                        "current-context: x\ncontexts:\n- {name: x, context: {cluster: c}}\n"
                        "clusters:\n- name: c\n  cluster:\n    server: https://c\n"
                        "    certificate-authority: ca/missing.pem\n");
    CHECK(load(&s) < 0);
    CHECK(str_contains(str_from(s.err.msg), STR("': line 8: cluster 'c': certificate-authority: "
                                                "file '")));
    CHECK(str_ends(str_from(s.err.msg), STR("/ca/missing.pem': No such file or directory")));
    story_end(&s);
}
