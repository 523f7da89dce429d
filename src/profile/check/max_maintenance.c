/* maxMaintenance: fewer nodes are in maintenance than may be, in all or in the node's group. */
#include "profile/check/check_plugin.h"

#include "base/map.h"

static bool has_key(struct str *const *items, uint32_t n, struct str key)
{
    for (uint32_t i = 0; i < n; i++) {
        if (str_eq((*items)[i], key)) {
            return true;
        }
    }
    return false;
}

static const void *prepare(const struct check_prepare_input *input)
{
    const struct plugin_value *group = check_value(input, "groupBy");
    struct str label = check_value(input, "groupLabel")->text;
    struct check_max_config *limit = ARENA_NEW(input->out, struct check_max_config);
    limit->max = check_value(input, "max")->number;
    limit->profile = check_value(input, "profile")->text;
    limit->skip_after_ns = check_value(input, "skipAfter")->number;
    limit->keys = ARENA_ARRAY(input->out, struct str, group->item_n + 1);
    for (uint32_t i = 0; i < group->item_n; i++) {
        if (!has_key(&limit->keys, limit->key_n, group->items[i])) {
            limit->keys[limit->key_n++] = group->items[i];
        }
    }
    if (label.n > 0 && !has_key(&limit->keys, limit->key_n, label)) {
        limit->keys[limit->key_n++] = label;
    }
    return limit;
}

/* The node's values of the keys that make a group, and the hash of those that count. */
static struct str *group_of(const struct check_input *in, uint32_t index, uint64_t *ret_limit_group)
{
    const struct check_max_config *limit = check_prepared(in, index);
    struct str *values = ARENA_ARRAY(in->out, struct str, limit->key_n + 1);
    uint64_t limit_group = map_hash((const uint64_t[2]){ index, limit->key_n }, STR("room"));
    for (uint32_t i = 0; i < limit->key_n; i++) {
        values[i] = node_edit_label(in->edit, limit->keys[i]);
        if (values[i].n > 0) {
            limit_group = map_hash((const uint64_t[2]){ limit_group, i }, values[i]);
        }
    }
    *ret_limit_group = limit_group;
    return values;
}

static struct fleet_group_usage group_usage(const struct check_input *in, uint32_t index,
                                            const struct str *values)
{
    return fleet_group_usage(in->fleet, &(struct fleet_group_query){ .index = index,
                                                                     .values = values,
                                                                     .self = in->edit->name,
                                                                     .granted = in->granted,
                                                                     .now = in->now });
}

/* "k=v,k2=v2" of the keys that the node has. */
static void print_group(const struct check_max_config *limit, const struct str *values,
                        struct buf *out)
{
    for (uint32_t i = 0; i < limit->key_n; i++) {
        if (values[i].p != NULL) {
            buf_printf(out, "%s" STR_FMT "=" STR_FMT, out->n > 0 ? "," : "",
                       STR_ARG(limit->keys[i]), STR_ARG(values[i]));
        }
    }
}

static void explain(const struct check_input *in, const struct check_max_config *limit,
                    const struct str *values, const struct fleet_group_usage *limit_group,
                    struct check_verdict *ret)
{
    CLEANUP(buf_done)
    struct buf group = { 0 };
    struct check_info info;
    print_group(limit, values, &group);
    struct str scope = STR("all nodes in the cluster");
    if (group.n > 0) {
        scope = arena_printf(in->out, "nodes matching the " STR_FMT " label selector",
                             STR_ARG(buf_str(&group)));
    }
    check_info_begin(&info);
    jw_pair_i64(&info.json, "maintained", limit_group->count);
    jw_pair_i64(&info.json, "max", limit->max);
    jw_pair(&info.json, "scope", scope);
    ret->info = check_info_end(&info, in->out);
    struct str with = STR("");
    if (group.n > 0) {
        with = arena_printf(in->out, " with " STR_FMT, STR_ARG(buf_str(&group)));
    }
    ret->reason =
        arena_printf(in->out, "%u of %lld nodes" STR_FMT " %s in maintenance", limit_group->count,
                     (long long)limit->max, STR_ARG(with), limit_group->count == 1 ? "is" : "are");
}

static void run(const struct check_input *in, uint32_t index, struct check_verdict *ret)
{
    const struct check_max_config *limit = check_prepared(in, index);
    struct str *values = group_of(in, index, &ret->limit_group);
    struct fleet_group_usage limit_group = group_usage(in, index, values);
    if (limit_group.unreadable.n > 0) {
        check_fail_with(in, ret, "node '" STR_FMT "': its data annotation cannot be read",
                        STR_ARG(str_sub(limit_group.unreadable, 0, 64)));
        return;
    }
    bool passed = (int64_t)limit_group.count < limit->max;
    ret->answer = passed ? CHECK_PASS : CHECK_FAIL;
    ret->next = passed ? USEC_NEVER : limit_group.next;
    if (in->explain) {
        explain(in, limit, values, &limit_group, ret);
    }
}

const struct check_plugin check_max_maintenance = {
    .name = "maxMaintenance",
    .prepare = prepare,
    .run = run,
};

int64_t check_group_left(const struct check_input *in, uint32_t index, usec_t *ret_next)
{
    const struct check_max_config *limit = check_prepared(in, index);
    ASSERT(in->config->instances[PLUGIN_CHECK].items[index].check == &check_max_maintenance);
    uint64_t hash;
    struct fleet_group_usage limit_group = group_usage(in, index, group_of(in, index, &hash));
    *ret_next = limit_group.next;
    /* As long as one node cannot be read, nobody knows whether another may go. */
    return limit_group.unreadable.n > 0 ? MIN(0, limit->max)
                                        : limit->max - (int64_t)limit_group.count;
}

struct str check_group_text(const struct check_input *in, uint32_t index)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    uint64_t hash;
    ASSERT(in->config->instances[PLUGIN_CHECK].items[index].check == &check_max_maintenance);
    print_group(check_prepared(in, index), group_of(in, index, &hash), &text);
    return arena_str(in->out, buf_str(&text));
}
