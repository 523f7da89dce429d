#include "sandbox/apiserver/builtin_types.h"
#include "sandbox/apiserver/builtin_types_table.h"
#include "tests/check.h"

TEST(types_of_every_built_in_can_be_made)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(types_done)
    struct types types;
    types_init(&types, &a);
    for (uint32_t i = 0; i < builtin_kind_types_n; i++) {
        struct str group = str_from(builtin_kind_types[i].group);
        struct str kind = str_from(builtin_kind_types[i].kind);
        CHECK(types_builtin_kind(&types, group, kind) != NULL);
        CLEANUP(map_done)
        struct map all = { 0 };
        types_referenced(&types, types_kind_name(&a, group, kind), &all);
        CHECK(map_find(&all, STR("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")) != NULL);
        MAP_EACH (&all, item) {
            CHECK(tree_at(map_item_value(item), "type") != NULL);
        }
    }
    CHECK(types_builtin_kind(&types, STR(""), STR("Nonsense")) == NULL);
}

TEST(types_know_lists_and_their_keys)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(types_done)
    struct types types;
    types_init(&types, &a);
    const struct tree *pod = types_builtin_kind(&types, STR(""), STR("Pod"));
    const struct tree *spec = types_member(&types, pod, STR("spec"));
    const struct tree *containers = types_member(&types, spec, STR("containers"));
    CHECK_STR(tree_text_at(containers, "x-kubernetes-patch-merge-key"), "name");
    const struct tree *container = types_item(&types, containers);
    const struct tree *ports = types_member(&types, container, STR("ports"));
    CHECK_STR(tree_json(&a, tree_get(ports, STR("x-kubernetes-list-map-keys"))),
              "[\"containerPort\",\"protocol\"]");
    const struct tree *port = types_item(&types, ports);
    CHECK_STR(tree_text_at(types_member(&types, port, STR("protocol")), "default"), "TCP");
    CHECK(types_member(&types, spec, STR("bogus")) == NULL);
    CHECK(!types_keeps_unknown(&types, spec));
}

static struct str complaint(struct arena *a, struct str object, struct err *err)
{
    CLEANUP(types_done)
    struct types types;
    types_init(&types, a);
    struct tree *o;
    *err = (struct err){ 0 };
    CHECK_EQ(tree_parse(object, a, &o, err), 0);
    int r =
        types_check(&types, types_builtin_kind(&types, STR(""), tree_text_at(o, "kind")), o, err);
    CHECK(r == 0 || r == -ERR_INVALID);
    return str_from(err->msg);
}

TEST(types_check_words_a_wrong_type_as_go_does)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err;
    static const struct {
        const char *object;
        const char *message;
    } cases[] = {
        { "{\"kind\":\"Pod\",\"spec\":{\"terminationGracePeriodSeconds\":\"x\"}}",
          "json: cannot unmarshal string into Go struct field "
          "PodSpec.spec.terminationGracePeriodSeconds of type int64" },
        { "{\"kind\":\"Pod\",\"metadata\":{\"labels\":{\"a\":1}}}",
          "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type "
          "string" },
        { "{\"kind\":\"Pod\",\"spec\":{\"containers\":{}}}",
          "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type "
          "[]v1.Container" },
        { "{\"kind\":\"Pod\",\"spec\":[]}",
          "json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec" },
        { "{\"kind\":\"Pod\",\"spec\":{\"containers\":[{\"name\":1}]}}",
          "json: cannot unmarshal number into Go struct field Container.spec.containers.name of "
          "type string" },
        { "{\"kind\":\"Node\",\"spec\":{\"unschedulable\":\"true\"}}",
          "json: cannot unmarshal string into Go struct field NodeSpec.spec.unschedulable of type "
          "bool" },
        { "{\"kind\":\"Pod\",\"spec\":{\"priority\":3000000000}}",
          "json: cannot unmarshal number 3000000000 into Go struct field PodSpec.spec.priority of "
          "type int32" },
        { "{\"kind\":\"Node\",\"spec\":{\"unschedulable\":null,\"x\":1},"
          "\"status\":{\"capacity\":{\"cpu\":4}}}",
          "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_STR(complaint(&a, str_from(cases[i].object), &err), cases[i].message);
    }
}
