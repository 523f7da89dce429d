#include "integration/vcenter.h"

#include "sandbox/sim/outbound.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"

/* A vCenter that answers as the test says, in virtual time. */
struct story {
    struct virtual_loop *time;
    struct inbox inbox;
    struct outbound *outbound;
    struct vcenter v;
    struct arena memory;
    struct buf seen; /* the methods that were called, in their order */
    struct buf text;
    const char *password; /* that is accepted */
    const char *session;  /* that is accepted; NULL: none */
    uint32_t session_n;
    bool broken;      /* what it answers is cut in the middle */
    bool unavailable; /* 503 */
    bool paged;
    const char *power; /* of its one machine */
    const char *fault; /* of calls about the machine */
    const char *task;  /* state of tasks */
    uint32_t change_n;
    uint32_t done_n;
    struct vcenter_result result;
};

static struct str method_of(struct str body)
{
    size_t at = str_find(body, STR("<Body><"));
    CHECK(at != SIZE_MAX);
    struct str rest = str_sub(body, at + 7, SIZE_MAX);
    return str_sub(rest, 0, str_find_char(rest, ' '));
}

static void answer_fault(struct story *s, const char *name, struct inbox_answer *ret)
{
    ret->status = 500;
    buf_printf(&s->text, "<Fault><faultstring>no</faultstring><detail><%sFault/></detail></Fault>",
               name);
}

static void answer_objects(struct story *s, struct str body)
{
    bool tasks = str_contains(body, STR("<obj type=\"Task\">"));
    bool first = s->paged && !str_contains(body, STR("<token>"));
    buf_printf(&s->text, "<R><returnval>%s", first && !tasks ? "<token>t</token>" : "");
    if (tasks) {
        buf_printf(&s->text,
                   "<objects><obj type=\"Task\">task-1</obj><propSet><name>info.state</name>"
                   "<val>%s</val></propSet></objects>",
                   s->task);
    } else if (first || !s->paged) {
        buf_add(&s->text,
                STR("<objects><obj type=\"HostSystem\">host-1</obj><propSet><name>name</name>"
                    "<val>esx-1</val></propSet><propSet><name>runtime.inMaintenanceMode</name>"
                    "<val>false</val></propSet></objects>"));
    }
    if (!tasks && !first) {
        buf_printf(&s->text,
                   "<objects><obj type=\"VirtualMachine\">vm-1</obj><propSet><name>name</name>"
                   "<val>node-1</val></propSet><propSet><name>runtime.powerState</name>"
                   "<val>%s</val></propSet></objects>",
                   s->power);
    }
    buf_add(&s->text, STR("</returnval></R>"));
}

static void answer_login(struct story *s, struct str body, struct inbox_answer *ret)
{
    struct str want = arena_printf(&s->memory, "<password>%s</password>", s->password);
    if (!str_contains(body, want)) {
        answer_fault(s, "InvalidLogin", ret);
        return;
    }
    s->session = arena_printf(&s->memory, "vmware_soap_session=\"s%u\"", ++s->session_n).p;
    ret->header = arena_printf(&s->memory, "%s; Path=/; HttpOnly", s->session);
    buf_add(&s->text, STR("<R><returnval><key>k</key></returnval></R>"));
}

static void answer(void *ctx, const struct inbox_message *message, struct inbox_answer *ret)
{
    struct story *s = ctx;
    struct str body = message->request.body;
    struct str method = method_of(body);
    struct str cookie = inbox_header(message, "Cookie");
    buf_printf(&s->seen, STR_FMT " ", STR_ARG(method));
    buf_reset(&s->text);
    buf_add(&s->text, STR("<Envelope><Body>"));
    if (s->unavailable) {
        ret->status = 503;
    } else if (str_eq(method, STR("RetrieveServiceContent"))) {
        buf_add(&s->text,
                STR("<R><returnval><rootFolder type=\"F\">r</rootFolder><propertyCollector "
                    "type=\"P\">p</propertyCollector><viewManager type=\"V\">v</viewManager>"
                    "<sessionManager type=\"S\">s</sessionManager></returnval></R>"));
    } else if (str_eq(method, STR("Login"))) {
        answer_login(s, body, ret);
    } else if (s->session == NULL || !str_eq(cookie, str_from(s->session))) {
        answer_fault(s, "NotAuthenticated", ret);
    } else if (str_eq(method, STR("CreateContainerView"))) {
        buf_add(&s->text, STR("<R><returnval type=\"ContainerView\">view</returnval></R>"));
    } else if (str_ends(method, STR("RetrievePropertiesEx"))) {
        answer_objects(s, body);
    } else if (s->fault != NULL) {
        answer_fault(s, s->fault, ret);
    } else {
        buf_add(&s->text, STR("<R><returnval type=\"Task\">task-1</returnval></R>"));
    }
    buf_add(&s->text, s->broken ? STR("</Bo") : STR("</Body></Envelope>"));
    ret->body = buf_str(&s->text);
}

static void on_change(void *ctx)
{
    ((struct story *)ctx)->change_n++;
}

static bool wants_host(void *ctx UNUSED, struct str host UNUSED)
{
    return true;
}

static void on_done(void *ctx, const struct vcenter_result *result)
{
    struct story *s = ctx;
    s->done_n++;
    s->result = *result;
}

static void configure(struct story *s, const char *password)
{
    vcenter_configure(&s->v, &(struct vcenter_config){ .url = STR("https://vcenter/sdk"),
                                                       .user = STR("user"),
                                                       .password = str_from(password) });
}

static void story_begin(struct story *s)
{
    *s = (struct story){ .time = virtual_loop_new(1, SECONDS(1767323045)),
                         .password = "right",
                         .power = "poweredOn",
                         .task = "success" };
    inbox_init(&s->inbox);
    s->inbox.script = answer;
    s->inbox.ctx = s;
    struct loop *loop = virtual_loop_root(s->time);
    s->outbound = sim_outbound_new(loop, &s->inbox, NULL);
    vcenter_init(
        &s->v, loop, s->outbound,
        &(struct vcenter_hooks){ .on_change = on_change, .wants_host = wants_host, .ctx = s });
    configure(s, "right");
}

static void story_end(struct story *s)
{
    vcenter_done(&s->v);
    sim_outbound_free(s->outbound);
    (void)virtual_loop_run(s->time, virtual_loop_now(s->time) + MINUTES(5));
    inbox_done(&s->inbox);
    virtual_loop_free(s->time);
    arena_done(&s->memory);
    buf_done(&s->seen);
    buf_done(&s->text);
}

static void run(struct story *s, usec_t span)
{
    (void)virtual_loop_run(s->time, virtual_loop_now(s->time) + span);
}

TEST(vcenter_logs_in_once_and_reads_all_pages)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s);
    s.paged = true;
    vcenter_read(&s.v);
    run(&s, SECONDS(5));
    CHECK_STR(buf_str(&s.seen), "RetrieveServiceContent Login CreateContainerView "
                                "RetrievePropertiesEx ContinueRetrievePropertiesEx ");
    CHECK_EQ(s.v.inventory.host_n, 1);
    CHECK_EQ(s.v.inventory.vm_n, 1);
    CHECK(s.v.read_at > 0 && s.v.err.code == 0);
    buf_reset(&s.seen);
    vcenter_read(&s.v);
    run(&s, SECONDS(5));
    CHECK_STR(buf_str(&s.seen), "RetrievePropertiesEx ContinueRetrievePropertiesEx ");
    CHECK_EQ(s.v.logins, 1);
}

TEST(vcenter_renews_a_session_that_has_expired)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s);
    vcenter_read(&s.v);
    run(&s, SECONDS(5));
    s.session = NULL;
    buf_reset(&s.seen);
    vcenter_read(&s.v);
    run(&s, SECONDS(5));
    CHECK_STR(buf_str(&s.seen), "RetrievePropertiesEx RetrieveServiceContent Login "
                                "CreateContainerView RetrievePropertiesEx ");
    CHECK_EQ(s.v.logins, 2);
    CHECK_EQ(s.v.err.code, 0);
}

/* Five refusals within three minutes lock an account of vSphere. */
TEST(vcenter_does_not_repeat_a_login_that_was_refused)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s);
    s.password = "another";
    for (uint32_t i = 0; i < 24 * 60; i++) { /* a day of periods */
        vcenter_read(&s.v);
        run(&s, MINUTES(1));
    }
    uint32_t logins = 0;
    struct str rest = buf_str(&s.seen);
    struct str word;
    while (str_split_next(&rest, ' ', &word)) {
        logins += str_eq(word, STR("Login")) ? 1 : 0;
    }
    CHECK(logins >= 10 && logins <= 30);
    CHECK(s.v.refused);
    CHECK_STR(s.v.err.msg, "the vCenter refuses: InvalidLogin: no");
    configure(&s, "another"); /* somebody has corrected the file: that is tried at once */
    run(&s, SECONDS(5));
    CHECK(!s.v.refused && s.v.err.code == 0);
    CHECK_EQ(s.v.inventory.vm_n, 1);
}

TEST(vcenter_backs_off_from_a_server_that_fails_and_keeps_what_it_knew)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s);
    vcenter_read(&s.v);
    run(&s, SECONDS(5));
    for (uint32_t way = 0; way < 2; way++) {
        s.broken = way == 0;
        s.unavailable = way == 1;
        buf_reset(&s.seen);
        vcenter_read(&s.v);
        run(&s, HOURS(1));
        CHECK(s.v.failing_since > 0 && s.v.err.code != 0);
        CHECK(s.seen.n / strlen("RetrievePropertiesEx ") < 60); /* once a minute at most */
        CHECK_EQ(s.v.inventory.vm_n, 1);
        s.broken = false;
        s.unavailable = false;
        run(&s, MINUTES(3));
        CHECK_EQ(s.v.err.code, 0);
        CHECK_EQ(s.v.failing_since, 0);
    }
    CHECK_EQ(s.v.logins, 1);
}

TEST(vcenter_waits_for_the_task_of_a_call)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s);
    struct vim25_ref vm = { STR("VirtualMachine"), STR("vm-1") };
    CHECK(vcenter_power(&s.v, VIM25_POWER_OFF, vm, on_done, &s) == NULL); /* no session */
    vcenter_read(&s.v);
    run(&s, SECONDS(5));
    s.task = "running";
    CHECK(vcenter_power(&s.v, VIM25_POWER_OFF, vm, on_done, &s) != NULL);
    run(&s, SECONDS(30));
    CHECK_EQ(s.done_n, 0);
    s.task = "success";
    run(&s, SECONDS(10));
    CHECK_EQ(s.done_n, 1);
    CHECK_EQ(s.result.err.code, 0);
    s.task = "error";
    (void)vcenter_power(&s.v, VIM25_POWER_ON, vm, on_done, &s);
    run(&s, SECONDS(10));
    CHECK_EQ(s.done_n, 2);
    CHECK_EQ(s.result.err.code, ERR_INVALID);
    s.task = "running";
    (void)vcenter_power(&s.v, VIM25_POWER_ON, vm, on_done, &s);
    run(&s, VCENTER_TASK_TIMEOUT + SECONDS(10));
    CHECK_EQ(s.done_n, 3);
    CHECK_EQ(s.result.err.code, ERR_TIMEOUT);
    s.fault = "ToolsUnavailable";
    (void)vcenter_power(&s.v, VIM25_SHUTDOWN_GUEST, vm, on_done, &s);
    run(&s, SECONDS(10));
    CHECK_EQ(s.done_n, 4);
    CHECK_EQ(s.result.fault, VIM25_TOOLS_UNAVAILABLE);
}

TEST(vcenter_looks_at_machines_between_readings)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s);
    struct vim25_ref vm = { STR("VirtualMachine"), STR("vm-1") };
    CHECK(!vcenter_check_vms(&s.v, &vm, 1)); /* no session */
    vcenter_read(&s.v);
    run(&s, SECONDS(5));
    CHECK_EQ(s.v.inventory.vms[0].power, VIM25_POWERED_ON);
    s.power = "poweredOff";
    CHECK(vcenter_check_vms(&s.v, &vm, 1));
    CHECK(!vcenter_check_vms(&s.v, &vm, 1)); /* one at a time */
    run(&s, SECONDS(5));
    CHECK_EQ(s.v.inventory.vms[0].power, VIM25_POWERED_OFF);
}
