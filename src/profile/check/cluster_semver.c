/* clusterSemver: another node has a newer version in the label. */
#include "format/semver.h"

#include "profile/check/check_plugin.h"

static const void *prepare(const struct check_prepare_input *input)
{
    struct check_semver_config *prepared = ARENA_NEW(input->out, struct check_semver_config);
    prepared->key = check_value(input, "key")->text;
    prepared->scoped = check_value(input, "profileScoped")->truth;
    return prepared;
}

static void explain(const struct check_input *in, struct str own, struct str max,
                    struct check_verdict *ret)
{
    struct check_info info;
    check_info_begin(&info);
    jw_pair(&info.json, "max", max);
    jw_pair(&info.json, "own", own);
    ret->info = check_info_end(&info, in->out);
    if (ret->answer == CHECK_PASS) {
        ret->reason = arena_printf(in->out, "version " STR_FMT " is older than " STR_FMT,
                                   STR_ARG(own), STR_ARG(max));
    } else {
        ret->reason =
            arena_printf(in->out, "no node has a newer version than " STR_FMT, STR_ARG(own));
    }
}

static void run(const struct check_input *in, uint32_t index, struct check_verdict *ret)
{
    const struct check_semver_config *prepared = check_prepared(in, index);
    struct err err = { 0 };
    struct semver own;
    struct semver max;
    struct str text = node_edit_label(in->edit, prepared->key);
    if (text.p == NULL) {
        check_fail_with(in, ret, "node does not have label " STR_FMT " containing version",
                        STR_ARG(prepared->key));
        return;
    }
    if (semver_parse(text, &own, &err) < 0) {
        check_fail_with(in, ret, "failed to parse current nodes version label: %s", err.msg);
        return;
    }
    struct str newest = fleet_semver(in->fleet, index, in->profile, &max);
    ret->answer = semver_cmp(&own, &max) < 0 ? CHECK_PASS : CHECK_FAIL;
    if (in->explain) {
        explain(in, text, newest, ret);
    }
}

const struct check_plugin check_cluster_semver = {
    .name = "clusterSemver",
    .prepare = prepare,
    .run = run,
};
