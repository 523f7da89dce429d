#include "operation/convert.h"

#include "format/yaml.h"
#include "tests/check.h"

static bool zone_is_known(void *ctx UNUSED, struct str name)
{
    return !str_eq(name, STR("Europe/Berln"));
}

static struct str json_of(struct arena *a, const struct jval *v)
{
    return v == NULL ? STR("null") : tree_json(a, tree_from(a, v));
}

/* The file of a row: its own, or flags or a Plan in the plainest form. */
static struct str file_of(struct arena *a, const struct jval *row)
{
    const struct jval *flags = jval_get(row, STR("flags"));
    const struct jval *plan = jval_get(row, STR("plan"));
    if (flags != NULL) {
        return arena_printf(a,
                            "kind: DaemonSet\nmetadata: {name: kured}\nspec: {template: {spec: "
                            "{containers: [{name: kured, args: " STR_FMT "}]}}}\n",
                            STR_ARG(json_of(a, flags)));
    }
    if (plan != NULL) {
        return arena_printf(a,
                            "apiVersion: upgrade.cattle.io/v1\nkind: Plan\nmetadata: {name: p}\n"
                            "spec: " STR_FMT "\n",
                            STR_ARG(json_of(a, plan)));
    }
    return jval_str(jval_get(row, STR("file")));
}

/* The notes of a weight are about these; `more` may stand beside them. */
static void check_notes(struct arena *a, const struct convert *c, enum convert_weight weight,
                        const struct jval *wanted, bool more)
{
    CLEANUP(buf_done)
    struct buf found = { 0 };
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->note_n; i++) {
        if (c->notes[i].weight == weight) {
            CHECK(c->notes[i].text.n > 0 && c->notes[i].pos.line > 0);
            buf_printf(&found, "[" STR_FMT "]", STR_ARG(c->notes[i].about));
            n++;
        }
    }
    JVAL_EACH (wanted, about) {
        struct str one = arena_printf(a, "[" STR_FMT "]", STR_ARG(jval_str(about)));
        if (!str_contains(buf_str(&found), one)) {
            CHECK_STR(buf_str(&found), one);
        }
    }
    if (!more && n != (wanted != NULL ? wanted->n : 0)) {
        CHECK_STR(buf_str(&found), wanted != NULL ? json_of(a, wanted) : STR_NONE);
    }
}

/* What every NodeMaintenance from kured has stands in no row. */
static struct tree *kured_spec(struct arena *a, const struct jval *row)
{
    struct tree *spec = tree_from(a, jval_get(row, STR("spec")));
    struct tree *operation = tree_obj(a);
    struct tree *operations = tree_arr(a);
    struct str every = jval_str(jval_get(row, STR("every")));
    const struct jval *parameters = jval_get(row, STR("parameters"));
    if (tree_at(spec, "disruption.drain") == NULL) {
        tree_set_at(a, spec, "disruption.drain.unmanagedPods", tree_str(a, STR("Delete")));
    }
    tree_set(a, operation, STR("name"), tree_str(a, STR("reboot")));
    tree_set(a, operation, STR("type"), tree_str(a, STR("cron")));
    tree_set_at(a, operation, "cron.every", tree_str(a, every.n > 0 ? every : STR("1h")));
    tree_set_at(a, operation, "template.name", tree_str(a, STR("drydock-reboot-if-required")));
    tree_set_at(a, operation, "template.parameters.kernel", tree_bool(a, false));
    if (parameters != NULL) {
        tree_set_at(a, operation, "template.parameters", tree_from(a, parameters));
    }
    tree_add(operations, operation);
    tree_set(a, spec, STR("operations"), operations);
    return spec;
}

static void check_error(const struct jval *row, int result, const struct err *err)
{
    int64_t line = 0;
    struct str wanted = jval_str(jval_get(row, STR("error")));
    CHECK(result < 0);
    if (!str_contains(str_from(err->msg), wanted)) {
        CHECK_STR(err->msg, wanted);
    }
    if (jval_i64(jval_get(row, STR("line")), &line)) {
        CHECK_EQ(err->pos.line, line);
    } else {
        CHECK(err->pos.line > 0 && err->pos.column > 0);
    }
}

static void check_row(struct arena *a, const struct jval *row, bool kured)
{
    struct convert_list list = { .zone_is_known = zone_is_known };
    struct err err = { 0 };
    int r = kured ? convert_kured(file_of(a, row), a, &list, &err)
                  : convert_suc(file_of(a, row), a, &list, &err);
    struct str name = jval_str(jval_get(row, STR("name")));
    if (jval_get(row, STR("error")) != NULL) {
        check_error(row, r, &err);
        return;
    }
    CHECK_STR(err.msg, "");
    CHECK_EQ(list.n, 1);
    const struct convert *c = &list.items[0];
    struct tree *spec = kured ? kured_spec(a, row) : tree_from(a, jval_get(row, STR("spec")));
    if (!tree_eq(tree_get(c->object, STR("spec")), spec)) {
        CHECK_STR(tree_json(a, tree_get(c->object, STR("spec"))), tree_json(a, spec));
    }
    CHECK_STR(tree_text_at(c->object, "metadata.name"), name.n > 0 ? name
                                                        : kured    ? STR("kured")
                                                                   : STR("p"));
    CHECK_STR(c->limit != NULL ? tree_json(a, tree_get(c->limit, STR("spec"))) : STR("null"),
              json_of(a, jval_get(row, STR("limit"))));
    check_notes(a, c, CONVERT_LOST, jval_get(row, STR("lost")), /* more= */ false);
    check_notes(a, c, CONVERT_LOOK, jval_get(row, STR("look")), /* more= */ kured);
}

static void check_table(const char *name, bool kured)
{
    struct arena a = { 0 };
    struct ydoc doc;
    struct err err = { 0 };
    int64_t i = 0;
    CHECK_EQ(ydoc_parse(check_data(name), &a, &doc, &err), 0);
    JVAL_EACH (doc.root, row) {
        struct arena each = { 0 };
        check_case(i++);
        check_row(&each, row, kured);
        arena_done(&each);
    }
    check_case(-1);
    arena_done(&a);
}

TEST(convert_carries_over_every_flag_of_kured_or_says_so)
{
    check_table("convert/kured.yaml", /* kured= */ true);
}

TEST(convert_carries_over_every_field_of_a_plan_or_says_so)
{
    check_table("convert/suc.yaml", /* kured= */ false);
}

TEST(convert_prints_what_was_lost_before_the_object)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct arena a = { 0 };
    struct convert_list list = { 0 };
    struct err err = { 0 };
    struct str file = STR("apiVersion: upgrade.cattle.io/v1\nkind: Plan\nmetadata: {name: p, "
                          "namespace: ns}\nspec: {concurrency: 1, nodeSelector: {}, version: v1, "
                          "exclusive: true, \"a\\nb: x\": 1, upgrade: {image: a}}\n");
    CHECK_EQ(convert_suc(file, &a, &list, &err), 0);
    convert_print(&list.items[0], &out);
    CHECK_STR(
        buf_str(&out),
        "# From Plan ns/p\n"
        "# Not carried over:\n"
        "#   spec.a b: x: a Plan has no such field\n"
        "#   spec.exclusive: payloads of one visit run one after the other in any case; for "
        "one node at a time in the whole cluster write rollout.exclusiveGroup\n"
        "# To look at:\n"
        "#   spec.nodeSelector: nodes on which the Plan is done run it once more: their labels "
        "are not read\n"
        "apiVersion: drydock.dev/v1alpha1\n"
        "kind: NodeMaintenance\n"
        "metadata:\n"
        "  name: p\n"
        "spec:\n"
        "  nodeSeries:\n"
        "    exclude:\n"
        "    - selector:\n"
        "        matchLabels:\n"
        "          plan.upgrade.cattle.io/p: disabled\n"
        "  disruption:\n"
        "    cordon: Never\n"
        "    drain:\n"
        "      enabled: false\n"
        "  operations:\n"
        "  - name: upgrade\n"
        "    type: one-shot\n"
        "    version:\n"
        "      value: v1\n"
        "    job:\n"
        "      image: \"a:${versionTag}\"\n");
    arena_done(&a);
}
