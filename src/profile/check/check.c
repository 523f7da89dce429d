/* Runs a check plugin, and the helpers that several plugins share. */
#include "profile/check/check.h"

#include "calendar/elapsed.h"
#include "format/gofloat.h"
#include "format/gotime.h"
#include "profile/check/check_plugin.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define QUOTE_MAX 40u  /* bytes of a value: with its sentence it fits 80 columns */
#define WANTS_FIRST 4u /* most checks want one thing */
#define SEC_NS INT64_C(1000000000)
#define HEARTBEAT MINUTES(5) /* a kubelet reports at least so often */

static const struct check_plugin *const plugins[] = {
    &check_affinity,
    &check_any_label,
    &check_check_hypervisor,
    &check_cluster_semver,
    &check_condition,
    &check_has_annotation,
    &check_has_label,
    &check_hypervisor_condition,
    &check_kubernikus_count,
    &check_max_maintenance,
    &check_node_count,
    &check_prometheus_instant,
    &check_stagger,
    &check_time_window,
    &check_wait,
    &check_wait_exclude,
};

const struct check_plugin *check_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(plugins); i++) {
        if (str_eq(str_from(plugins[i]->name), str_from(name))) {
            return plugins[i];
        }
    }
    return NULL;
}

void check_run(const struct check_input *in, uint32_t index, struct check_verdict *ret)
{
    const struct config_instances *instances = &in->config->instances[PLUGIN_CHECK];
    ASSERT(index < instances->n);
    const struct check_plugin *plugin = instances->items[index].check;
    ASSERT(plugin != NULL);
    *ret = (struct check_verdict){ .answer = CHECK_FAIL, .next = USEC_NEVER };
    plugin->run(in, index, ret);
    ASSERT((ret->answer == CHECK_ERROR) == (ret->error.n > 0));
}

const struct plugin_value *check_value(const struct check_prepare_input *input, const char *key)
{
    return plugin_get(input->plugin, input->values, key);
}

const void *check_key_prepare(const struct check_prepare_input *input)
{
    struct check_key_config *key = ARENA_NEW(input->out, struct check_key_config);
    key->key = check_value(input, "key")->text;
    key->value = check_value(input, "value")->text;
    return key;
}

void check_key_run(const struct check_input *in, const struct check_key_config *key,
                   const char *what, struct str value, struct check_verdict *ret)
{
    bool there = value.p != NULL;
    ret->answer =
        there && (key->value.n == 0 || str_eq(value, key->value)) ? CHECK_PASS : CHECK_FAIL;
    if (!in->explain) {
        return;
    }
    if (!there) {
        ret->info = check_info_reason(
            in->out, arena_printf(in->out, "%s " STR_FMT " not present", what, STR_ARG(key->key)));
        ret->reason = arena_printf(in->out, "the node has no %s " STR_FMT, what, STR_ARG(key->key));
        return;
    }
    ret->reason = arena_printf(in->out, "%s " STR_FMT " is " STR_FMT, what, STR_ARG(key->key),
                               STR_ARG(check_quote_text(in->out, value)));
    if (ret->answer != CHECK_PASS) {
        ret->reason = arena_printf(in->out, STR_FMT ", not " STR_FMT, STR_ARG(ret->reason),
                                   STR_ARG(check_quote_text(in->out, key->value)));
    }
}

void check_info_begin(struct check_info *info)
{
    info->buf = (struct buf){ .max = CHECK_INFO_MAX };
    info->json = json_writer_on(&info->buf);
    jw_obj(&info->json);
}

struct str check_info_end(struct check_info *info, struct arena *out)
{
    jw_obj_end(&info->json);
    struct str json = info->buf.full ? STR("{\"reason\":\"too much to show\"}")
                                     : arena_str(out, buf_str(&info->buf));
    buf_done(&info->buf);
    return json;
}

void check_info_f64(struct check_info *info, const char *key, double value)
{
    struct err err = { 0 };
    if (key != NULL) {
        jw_key(&info->json, str_from(key));
    }
    if (!isfinite(value)) {
        char text[GOFLOAT_TEXT_MAX];
        jw_str(&info->json, gofloat_print(value, text));
    } else if (jw_f64(&info->json, value, &err) < 0) {
        ASSERT(false); /* finite numbers can be written */
    }
}

struct str check_info_reason(struct arena *out, struct str reason)
{
    struct check_info info;
    check_info_begin(&info);
    jw_pair(&info.json, "reason", reason);
    return check_info_end(&info, out);
}

void check_fail_with(const struct check_input *in, struct check_verdict *ret, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args); /* a line for people: it may be cut */
    va_end(args);
    ret->answer = CHECK_ERROR;
    ret->error = arena_str(in->out, str_from(text));
}

void check_want(const struct check_input *in, struct check_verdict *ret,
                const struct facts_want *want)
{
    /* The array is full at every power of two, and doubles. */
    if ((ret->want_n & (ret->want_n - 1)) == 0 &&
        (ret->want_n == 0 || ret->want_n >= WANTS_FIRST)) {
        uint32_t cap = MAX(WANTS_FIRST, ret->want_n * 2);
        struct facts_want *wants = ARENA_ARRAY(in->out, struct facts_want, cap);
        if (ret->want_n > 0) {
            memcpy(wants, ret->wants, ret->want_n * sizeof(*wants));
        }
        ret->wants = wants;
    }
    ret->wants[ret->want_n++] = *want;
}

bool check_needs_refresh(const struct check_input *in, bool known, usec_t asked, usec_t answered,
                         struct check_verdict *ret)
{
    /* Without an interval the original asks at each look, and the kubelet's heartbeats make it look
     * every five minutes. */
    bool no_interval = in->config->requeue_ns < 0;
    usec_t interval = config_refresh(in->config);
    usec_t now = timestamp_to_usec(in->now);
    usec_t due = MAX(asked + interval, answered + CONFIG_REFRESH_MIN);
    bool fresh = known && asked <= now && now < due;
    usec_t look = no_interval ? now + HEARTBEAT : fresh ? due : now + interval;
    ret->next = MIN(ret->next, look);
    return !fresh;
}

struct str check_duration_text(struct arena *out, int64_t ns)
{
    char text[DURATION_TEXT_MAX];
    int64_t whole = ns - ns % SEC_NS;
    struct str s = duration_print(ns > 0 && whole == 0 ? ns : whole, text);
    struct str rest = s;
    /* Go writes 30m0s and 2h0m0s. */
    if (str_cut_suffix(s, STR("m0s"), &rest)) {
        s.n -= 2;
        if (str_cut_suffix(s, STR("h0m"), &rest)) {
            s.n -= 2;
        }
    }
    return arena_str(out, s);
}

struct str check_time_text(struct arena *out, usec_t wall, usec_t now, int32_t offset)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct timestamp s = timestamp_from_usec(wall);
    s.offset = offset;
    const char *layout = wall - now < DAYS(6) ? "Mon 15:04" : "Mon Jan 2 2006 15:04";
    gotime_format(&text, s, str_from(layout));
    return arena_str(out, buf_str(&text));
}

struct str check_quote_text(struct arena *out, struct str value)
{
    if (value.n <= QUOTE_MAX) {
        return arena_printf(out, "'" STR_FMT "'", STR_ARG(value));
    }
    size_t n = QUOTE_MAX - 3;
    while (n > 0 && ((unsigned char)value.p[n] & 0xc0u) == 0x80u) {
        n--; /* not within a character */
    }
    return arena_printf(out, "'" STR_FMT "…'", STR_ARG(str_sub(value, 0, n)));
}
