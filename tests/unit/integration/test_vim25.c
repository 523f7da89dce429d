#include "integration/vim25.h"

#include "tests/check.h"

#define ENVELOPE(body)                                                                             \
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?><soapenv:Envelope "                                 \
    "xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\" "                                 \
    "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"><soapenv:Body>" body                  \
    "</soapenv:Body></soapenv:Envelope>"

static const struct vim25_service service = {
    .root = { STR_INIT("Folder"), STR_INIT("group-d1") },
    .property_collector = { STR_INIT("PropertyCollector"), STR_INIT("pc") },
    .view_manager = { STR_INIT("ViewManager"), STR_INIT("vm") },
    .session_manager = { STR_INIT("SessionManager"), STR_INIT("sm") },
};

/* The element of a request, by the reader that also reads answers. */
static const struct xml_node *request(const struct buf *text, struct arena *out)
{
    const struct xml_node *root = NULL;
    struct err err = { 0 };
    CHECK_EQ(xml_parse(buf_str(text), out, &root, &err), 0);
    const struct xml_node *call = xml_child(root, STR("Body"))->first;
    CHECK_STR(call->namespace, "urn:vim25");
    return call;
}

TEST(vim25_login_carries_any_password)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    vim25_print_login(&out, &service, STR("DOM\\user"), STR("<&\"p]]>ä"));
    const struct xml_node *call = request(&out, &a);
    CHECK_STR(call->name, "Login");
    CHECK_STR(xml_child_text(call, STR("userName")), "DOM\\user");
    CHECK_STR(xml_child_text(call, STR("password")), "<&\"p]]>ä");
    CHECK_STR(xml_child_text(call, STR("_this")), "sm");
    CHECK_STR(xml_attribute(xml_child(call, STR("_this")), STR("type")), "SessionManager");
}

TEST(vim25_inventory_asks_for_hosts_and_machines_of_the_view_in_pages)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    vim25_print_inventory(&out, &service,
                          (struct vim25_ref){ STR("ContainerView"), STR("view-1") });
    const struct xml_node *call = request(&out, &a);
    const struct xml_node *spec = xml_child(call, STR("specSet"));
    CHECK_STR(call->name, "RetrievePropertiesEx");
    CHECK_STR(xml_child_text(spec->first, STR("type")), "HostSystem");
    CHECK_STR(xml_child_text(spec->first->next, STR("type")), "VirtualMachine");
    const struct xml_node *object = xml_child(spec, STR("objectSet"));
    CHECK_STR(xml_child_text(object, STR("obj")), "view-1");
    CHECK_STR(xml_type(xml_child(object, STR("selectSet"))), "TraversalSpec");
    CHECK_STR(xml_child_text(xml_child(call, STR("options")), STR("maxObjects")), "500");
    buf_reset(&out);
    vim25_print_next_page(&out, &service, STR("<token>"));
    CHECK_STR(xml_child_text(request(&out, &a), STR("token")), "<token>");
    buf_reset(&out);
    vim25_print_power_call(&out, VIM25_POWER_OFF,
                           (struct vim25_ref){ STR("VirtualMachine"), STR("vm-1") });
    CHECK_STR(request(&out, &a)->name, "PowerOffVM_Task");
}

TEST(vim25_reads_the_service)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct vim25_answer answer;
    struct vim25_service got;
    CHECK_EQ(vim25_parse(
                 STR(ENVELOPE("<RetrieveServiceContentResponse xmlns=\"urn:vim25\"><returnval>"
                              "<rootFolder type=\"Folder\">group-d1</rootFolder>"
                              "<propertyCollector type=\"PropertyCollector\">pc</propertyCollector>"
                              "<viewManager type=\"ViewManager\">ViewManager</viewManager>"
                              "<about><name>x</name><apiVersion>7.0</apiVersion></about>"
                              "<sessionManager type=\"SessionManager\">sm</sessionManager>"
                              "</returnval></RetrieveServiceContentResponse>")),
                 &a, &answer, &err),
             0);
    CHECK_EQ(answer.fault, VIM25_OK);
    CHECK_EQ(vim25_read_service(&answer, &got, &err), 0);
    CHECK_STR(got.version, "7.0");
    CHECK(vim25_ref_eq(got.root, service.root));
    CHECK_EQ(vim25_parse(STR(ENVELOPE("<R><returnval/></R>")), &a, &answer, &err), 0);
    CHECK_EQ(vim25_read_service(&answer, &got, &err), -ERR_PROTO);
    CHECK_STR(err.msg, "the answer does not describe a vCenter");
}

TEST(vim25_tells_faults_apart)
{
    static const struct {
        const char *detail;
        enum vim25_fault fault;
        const char *text;
    } cases[] = {
        { "<NotAuthenticatedFault xsi:type=\"NotAuthenticated\"/>", VIM25_NOT_AUTHENTICATED,
          "NotAuthenticated: words here" },
        { "<Fault xmlns:v=\"urn:vim25\" xsi:type=\"v:InvalidLogin\"/>", VIM25_INVALID_LOGIN,
          "InvalidLogin: words here" },
        { "<ToolsUnavailableFault/>", VIM25_TOOLS_UNAVAILABLE, "ToolsUnavailable: words here" },
        { "<InvalidPowerStateFault/>", VIM25_WRONG_POWER_STATE, "InvalidPowerState: words here" },
        { "<ManagedObjectNotFoundFault/>", VIM25_OBJECT_GONE, "ManagedObjectNotFound: words here" },
        { "<NoPermissionFault/>", VIM25_NO_PERMISSION, "NoPermission: words here" },
        { "<Whatever/>", VIM25_OTHER_FAULT, "Whatever: words here" },
        { "", VIM25_OTHER_FAULT, "fault: words here" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        CLEANUP(buf_done)
        struct buf text = { 0 };
        struct err err = { 0 };
        struct vim25_answer answer;
        check_case((int64_t)i);
        buf_add(&text, STR("<e:Envelope xmlns:e=\"urn:e\" "
                           "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\">"
                           "<e:Body><e:Fault><faultcode>ServerFaultCode</faultcode>"
                           "<faultstring>words\nhere</faultstring><detail>"));
        buf_add(&text, str_from(cases[i].detail));
        buf_add(&text, STR("</detail></e:Fault></e:Body></e:Envelope>"));
        CHECK_EQ(vim25_parse(buf_str(&text), &a, &answer, &err), 0);
        CHECK_EQ(answer.fault, cases[i].fault);
        CHECK_STR(answer.fault_text, cases[i].text);
        CHECK(answer.result == NULL);
    }
    check_case(-1);
}

static const char *const page =
    ENVELOPE("<RetrievePropertiesExResponse xmlns=\"urn:vim25\"><returnval><token>7</token>"
             "<objects><obj type=\"HostSystem\">host-1</obj>"
             "<propSet><name>name</name><val xsi:type=\"xsd:string\">esx-1</val></propSet>"
             "<propSet><name>config.product.version</name><val>8.0.2</val></propSet>"
             "<propSet><name>runtime.inMaintenanceMode</name><val>true</val></propSet>"
             "<propSet><name>recentTask</name><val xsi:type=\"ArrayOfManagedObjectReference\">"
             "<ManagedObjectReference type=\"Task\">task-1</ManagedObjectReference>"
             "<ManagedObjectReference type=\"Task\">task-2</ManagedObjectReference></val></propSet>"
             "<propSet><name>triggeredAlarmState</name><val><AlarmState><key>k</key>"
             "<entity type=\"HostSystem\">host-1</entity><alarm type=\"Alarm\">alarm-4</alarm>"
             "</AlarmState></val></propSet></objects>"
             "<objects><obj type=\"VirtualMachine\">vm-1</obj>"
             "<propSet><name>name</name><val>node-1</val></propSet>"
             "<propSet><name>runtime.host</name><val type=\"HostSystem\">host-1</val></propSet>"
             "<propSet><name>runtime.powerState</name><val>poweredOn</val></propSet>"
             "<propSet><name>guest.toolsRunningStatus</name><val>guestToolsNotRunning</val>"
             "</propSet></objects>"
             "<objects><obj type=\"Task\">task-1</obj>"
             "<propSet><name>info.name</name><val>EnterMaintenanceMode_Task</val></propSet>"
             "<propSet><name>info.state</name><val>error</val></propSet>"
             "<propSet><name>info.error</name><val><fault xsi:type=\"Timedout\"/>"
             "<localizedMessage>too late</localizedMessage></val></propSet></objects>"
             "<objects><obj type=\"Alarm\">alarm-4</obj>"
             "<propSet><name>info.name</name><val>Host hardware</val></propSet></objects>"
             "<objects><obj type=\"Folder\">group-1</obj></objects>"
             "</returnval></RetrievePropertiesExResponse>");

TEST(vim25_reads_pages_of_objects)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    CLEANUP(arena_done)
    struct arena out = { 0 };
    struct err err = { 0 };
    struct vim25_answer answer;
    struct vim25_objects objects = { 0 };
    struct str token;
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_EQ(vim25_parse(str_from(page), &tmp, &answer, &err), 0);
        CHECK_EQ(vim25_read_objects(&answer, &out, &objects, &token, &err), 0);
        arena_reset(&tmp); /* what was read does not live there */
    }
    CHECK_STR(token, "7");
    CHECK_EQ(objects.host_n, 2);
    CHECK_EQ(objects.vm_n, 2);
    const struct vim25_host *host = &objects.hosts[1];
    CHECK_STR(host->name, "esx-1");
    CHECK_STR(host->version, "8.0.2");
    CHECK(host->known && host->in_maintenance);
    CHECK_EQ(host->task_n, 2);
    CHECK_STR(host->tasks[1].id, "task-2");
    CHECK_EQ(host->alarm_n, 1);
    CHECK_STR(host->alarms[0].id, "alarm-4");
    const struct vim25_vm *vm = &objects.vms[0];
    CHECK_STR(vm->name, "node-1");
    CHECK(vim25_ref_eq(vm->host, host->ref));
    CHECK_EQ(vm->power, VIM25_POWERED_ON);
    CHECK(vm->tools_absent);
    CHECK_STR(objects.tasks[0].name, "EnterMaintenanceMode_Task");
    CHECK_STR(objects.tasks[0].state, "error");
    CHECK_STR(objects.tasks[0].error, "too late");
    CHECK_STR(objects.alarms[0].name, "Host hardware");
}

TEST(vim25_says_what_is_no_answer)
{
    static const char *const texts[] = { "",
                                         "<html/>",
                                         "<Envelope/>",
                                         "<Envelope><Body/></Envelope>",
                                         "no",
                                         "<a><Body><x/></Body></a>" };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct err err = { 0 };
        struct vim25_answer answer;
        check_case((int64_t)i);
        CHECK(vim25_parse(str_from(texts[i]), &a, &answer, &err) < 0);
        CHECK(err.msg[0] != '\0');
    }
    check_case(-1);
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct vim25_answer answer;
    struct vim25_objects objects = { 0 };
    struct vim25_ref ref;
    struct str token;
    CHECK_EQ(vim25_parse(STR(ENVELOPE("<R><returnval><objects><obj/></objects></returnval></R>")),
                         &a, &answer, &err),
             0);
    CHECK_EQ(vim25_read_objects(&answer, &a, &objects, &token, &err), -ERR_PROTO);
    CHECK_EQ(vim25_read_ref(&answer, &ref, &err), -ERR_PROTO);
}
