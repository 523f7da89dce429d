#include "kinds/node_operation_template.h"

#include "format/yaml.h"
#include "tests/check.h"

static const struct node_operation_template *read_object(struct arena *a, struct str text)
{
    const struct jval *object = NULL;
    struct err err = { 0 };
    struct node_operation_template *t = ARENA_NEW(a, struct node_operation_template);
    CHECK_EQ(json_parse(text, 0, a, &object, &err), 0);
    node_operation_template_read(object, a, t);
    return t;
}

TEST(node_operation_template_reads_its_parameters)
{
    struct arena a = { 0 };
    const struct node_operation_template *t = read_object(
        &a, STR("{\"metadata\":{\"name\":\"t\"},\"spec\":{\"version\":\"1\",\"parameters\":["
                "{\"name\":\"packages\",\"type\":\"list\",\"default\":[],\"pattern\":\"^[a-z]+$\","
                "\"max\":64},{\"name\":\"token\",\"type\":\"string\",\"secret\":true,"
                "\"required\":true},{\"name\":\"reboot\",\"type\":\"enum\",\"enum\":[\"Never\"],"
                "\"default\":\"Never\"}],\"job\":{\"script\":\"x\"},"
                "\"defaults\":{\"timeout\":\"45m\"}}}"));
    CHECK_STR(spec_problem_text(&t->problem, &a), "");
    CHECK_EQ(t->parameter_n, 3);
    CHECK_EQ(t->parameters[0].type, PARAMETER_LIST);
    CHECK_STR(t->parameters[0].default_json, "[]");
    CHECK(t->parameters[0].pattern != NULL && t->parameters[0].has_max &&
          !t->parameters[0].has_min);
    CHECK(t->parameters[1].secret && t->parameters[1].required);
    CHECK_EQ(t->parameters[2].allowed.n, 1);
    CHECK_EQ(t->types, 1u << OPERATION_ONE_SHOT | 1u << OPERATION_CRON);
    CHECK_EQ(t->payload, PAYLOAD_JOB);
    CHECK_STR(t->defaults_json, "{\"timeout\":\"45m\"}");
    arena_done(&a);
}

TEST(node_operation_template_of_resources_may_be_realtime)
{
    struct arena a = { 0 };
    const struct node_operation_template *t = read_object(
        &a, STR("{\"metadata\":{\"name\":\"t\"},\"spec\":{\"resources\":[{\"name\":\"a\","
                "\"type\":\"file\"}]}}"));
    CHECK_STR(spec_problem_text(&t->problem, &a), "");
    CHECK_EQ(t->payload, PAYLOAD_RESOURCES);
    CHECK(t->types & 1u << OPERATION_REALTIME);
    CHECK_STR(t->defaults_json, "{}");
    arena_done(&a);
}

TEST(node_operation_template_agrees_with_the_api_server)
{
    struct arena a = { 0 };
    struct ydoc doc;
    struct err err = { 0 };
    CHECK_EQ(ydoc_parse(check_data("operations/nodeoperationtemplates.yaml"), &a, &doc, &err), 0);
    int64_t i = 0;
    JVAL_EACH (doc.root, row) {
        check_case(i++);
        struct tree *object = tree_obj(&a);
        struct str name = jval_str(jval_at(row, "metadata.name"));
        tree_set_at(&a, object, "metadata.name", tree_str(&a, name.n > 0 ? name : STR("x")));
        tree_set(&a, object, STR("spec"), tree_from(&a, jval_get(row, STR("spec"))));
        const struct node_operation_template *t = read_object(&a, tree_json(&a, object));
        if (jval_get(row, STR("refused")) == NULL) {
            CHECK_STR(spec_problem_text(&t->problem, &a), "");
        } else {
            CHECK(t->problem.reason.n > 0);
        }
    }
    check_case(-1);
    CHECK(i > 10);
    arena_done(&a);
}
