#include "cmd/rbac.h"

#include "format/json.h"
#include "tests/check.h"

TEST(rbac_page_is_the_one_in_the_documentation)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    rbac_print_page(&out);
    /* To mend: tools/manifests */
    CHECK_STR(check_data("../../docs/rbac.md"), buf_str(&out));
}

TEST(rbac_list_is_the_one_in_the_chart)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    rbac_print_list(&out);
    /* To mend: tools/manifests */
    CHECK_STR(check_data("../../deploy/helm/drydock/files/rights.json"), buf_str(&out));
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err err = { 0 };
    const struct jval *root = NULL;
    CHECK_EQ(json_parse(buf_str(&out), JSON_GO, &tmp, &root, &err), 0);
    uint32_t n = 0;
    const struct jval *rows = jval_get(root, STR("rights"));
    JVAL_EACH (rows, row) {
        n += jval_kind(jval_get(row, STR("verbs"))) == JARR ? 1 : 0;
    }
    CHECK_EQ(n, rights_count);
}

TEST(rbac_prints_a_role_where_it_counts)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    const struct str roles[] = { STR("viewer"), STR("override") };
    rbac_print_yaml(&(struct rbac_choice){ .roles = roles,
                                           .role_n = ARRAY_LEN(roles),
                                           .namespace = STR("here") },
                    &out);
    CHECK_STR(buf_str(&out),
              "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: "
              "drydock-override}\nrules:\n- {apiGroups: [repairman.k8s.io], resources: "
              "[maintenancerequests], verbs: [override]}\n---\n"
              "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: "
              "drydock-viewer, namespace: here}\nrules:\n- {apiGroups: [coordination.k8s.io], "
              "resources: [leases], verbs: [list]}\n- {apiGroups: [\"\"], resources: [pods/proxy], "
              "verbs: [get]}\n");
}

TEST(rbac_prints_a_role_for_each_namespace_of_leases)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err err = { 0 };
    const struct jval *root = NULL;
    const struct str role = STR("controller");
    const struct str spaces[] = { STR("one"), STR("two") };
    rbac_print_json(&(struct rbac_choice){ .roles = &role,
                                           .role_n = 1,
                                           .lease_namespaces = spaces,
                                           .lease_namespace_n = ARRAY_LEN(spaces),
                                           .namespace = STR("home") },
                    &out);
    CHECK_EQ(json_parse(buf_str(&out), JSON_GO, &tmp, &root, &err), 0);
    uint32_t n = 0;
    const struct jval *items = jval_get(root, STR("items"));
    JVAL_EACH (items, item) {
        struct str name = jval_str(jval_at(item, "metadata.name"));
        struct str space = jval_str(jval_at(item, "metadata.namespace"));
        if (str_eq(name, STR("drydock-controller-leases"))) {
            CHECK(str_eq(space, spaces[n]));
            n++;
        } else {
            CHECK_STR(name, "drydock-controller");
            CHECK(space.n == 0 || str_eq(space, STR("home")));
        }
    }
    CHECK_EQ(n, 2);
}
