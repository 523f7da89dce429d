/* Whether a machine asks for a reboot, where no agent tells: a Job looks. */
#include "operation/operations_internal.h"

static void script_add_word(struct buf *script, struct str word)
{
    buf_add_char(script, '\'');
    for (size_t i = 0; i < word.n; i++) {
        if (word.p[i] == '\'') {
            buf_add(script, STR("'\\''"));
        } else {
            buf_add_char(script, word.p[i]);
        }
    }
    buf_add_char(script, '\'');
}

struct str reboot_probe_payload(const struct operation_reboot *reboot, struct arena *out)
{
    CLEANUP(buf_done)
    struct buf script = { 0 };
    CLEANUP(buf_done)
    struct buf json = { 0 };
    struct json_writer w = json_writer_on(&json);
    for (uint32_t i = 0; i < reboot->files.n; i++) {
        buf_add(&script, STR("[ ! -e "));
        script_add_word(&script, reboot->files.items[i]);
        buf_add(&script, STR(" ] || exit 0\n"));
    }
    for (uint32_t i = 0; i < reboot->command.n; i++) {
        buf_add(&script, i == 0 ? STR_NONE : STR(" "));
        script_add_word(&script, reboot->command.items[i]);
    }
    if (reboot->command.n > 0) {
        buf_add(&script, STR("\ncase $? in 0) exit 0 ;; 1) exit 77 ;; *) exit 1 ;; esac\n"));
    }
    buf_add(&script, STR("exit 77\n"));
    jw_obj(&w);
    jw_pair(&w, "script", buf_str(&script));
    jw_obj_end(&w);
    return arena_str(out, buf_str(&json));
}

/* An operation that only reboots has its preflight to look with. */
int reboot_probe_spec(const struct campaign *c, const struct campaign_operation *op,
                      const struct turn_machine *machine, uint32_t attempt, struct arena *out,
                      struct run_job_spec *ret, struct err *err)
{
    struct campaign_operation looks = *op;
    if (!op->bare) {
        looks.bare = true;
        looks.preflight = (struct operation_preflight){ 0 };
    }
    int r = campaign_run_spec(c, &looks, machine, attempt, /* preflight= */ true, out, ret, err);
    ret->probe = true;
    return r;
}
