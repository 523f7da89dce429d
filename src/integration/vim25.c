#include "integration/vim25.h"

#define VIM25_OBJECTS_MAX 200000u /* of an inventory: twice what a vCenter can have */
#define VIM25_WORDS_MAX 300u      /* of a fault's own words */

bool vim25_ref_eq(struct vim25_ref a, struct vim25_ref b)
{
    return str_eq(a.id, b.id) && str_eq(a.type, b.type);
}

/* ── requests ──────────────────────────────────────────────────────────────────────────────── */

static void print_open(struct buf *out, const char *method)
{
    buf_printf(out,
               "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
               "<Envelope xmlns=\"http://schemas.xmlsoap.org/soap/envelope/\" "
               "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"><Body>"
               "<%s xmlns=\"urn:vim25\">",
               method);
}

static void print_close(struct buf *out, const char *method)
{
    buf_printf(out, "</%s></Body></Envelope>", method);
}

static void print_text(struct buf *out, const char *name, struct str text)
{
    buf_printf(out, "<%s>", name);
    xml_add_text(out, text);
    buf_printf(out, "</%s>", name);
}

static void print_ref(struct buf *out, const char *name, struct vim25_ref ref)
{
    buf_printf(out, "<%s type=\"", name);
    xml_add_text(out, ref.type);
    buf_add(out, STR("\">"));
    xml_add_text(out, ref.id);
    buf_printf(out, "</%s>", name);
}

void vim25_print_service_content(struct buf *out)
{
    print_open(out, "RetrieveServiceContent");
    print_ref(out, "_this",
              (struct vim25_ref){ .type = STR("ServiceInstance"), .id = STR("ServiceInstance") });
    print_close(out, "RetrieveServiceContent");
}

void vim25_print_login(struct buf *out, const struct vim25_service *service, struct str user,
                       struct str password)
{
    print_open(out, "Login");
    print_ref(out, "_this", service->session_manager);
    print_text(out, "userName", user);
    print_text(out, "password", password);
    print_close(out, "Login");
}

void vim25_print_logout(struct buf *out, const struct vim25_service *service)
{
    print_open(out, "Logout");
    print_ref(out, "_this", service->session_manager);
    print_close(out, "Logout");
}

void vim25_print_create_view(struct buf *out, const struct vim25_service *service)
{
    print_open(out, "CreateContainerView");
    print_ref(out, "_this", service->view_manager);
    print_ref(out, "container", service->root);
    buf_add(out, STR("<type>HostSystem</type><type>VirtualMachine</type>"
                     "<recursive>true</recursive>"));
    print_close(out, "CreateContainerView");
}

static const char *const vim25_host_properties[] = { "name", "config.product.version",
                                                     "runtime.inMaintenanceMode", "recentTask",
                                                     "triggeredAlarmState" };
static const char *const vim25_vm_properties[] = { "name", "runtime.host", "runtime.powerState",
                                                   "guest.toolsRunningStatus" };
static const char *const vim25_task_properties[] = { "info.name", "info.state", "info.error" };
static const char *const vim25_alarm_properties[] = { "info.name" };

static void print_properties(struct buf *out, const char *type, const char *const *names, size_t n)
{
    buf_printf(out, "<propSet><type>%s</type><all>false</all>", type);
    for (size_t i = 0; i < n; i++) {
        buf_printf(out, "<pathSet>%s</pathSet>", names[i]);
    }
    buf_add(out, STR("</propSet>"));
}

void vim25_print_inventory(struct buf *out, const struct vim25_service *service,
                           struct vim25_ref view)
{
    print_open(out, "RetrievePropertiesEx");
    print_ref(out, "_this", service->property_collector);
    buf_add(out, STR("<specSet>"));
    print_properties(out, "HostSystem", vim25_host_properties, ARRAY_LEN(vim25_host_properties));
    print_properties(out, "VirtualMachine", vim25_vm_properties, ARRAY_LEN(vim25_vm_properties));
    buf_add(out, STR("<objectSet>"));
    print_ref(out, "obj", view);
    buf_add(out, STR("<skip>true</skip><selectSet xsi:type=\"TraversalSpec\"><name>view</name>"
                     "<type>ContainerView</type><path>view</path><skip>false</skip></selectSet>"
                     "</objectSet></specSet>"));
    buf_printf(out, "<options><maxObjects>%u</maxObjects></options>", VIM25_PAGE_MAX);
    print_close(out, "RetrievePropertiesEx");
}

void vim25_print_next_page(struct buf *out, const struct vim25_service *service, struct str token)
{
    print_open(out, "ContinueRetrievePropertiesEx");
    print_ref(out, "_this", service->property_collector);
    print_text(out, "token", token);
    print_close(out, "ContinueRetrievePropertiesEx");
}

void vim25_print_objects(struct buf *out, const struct vim25_service *service,
                         const struct vim25_ref *refs, uint32_t n)
{
    print_open(out, "RetrievePropertiesEx");
    print_ref(out, "_this", service->property_collector);
    buf_add(out, STR("<specSet>"));
    print_properties(out, "Task", vim25_task_properties, ARRAY_LEN(vim25_task_properties));
    print_properties(out, "Alarm", vim25_alarm_properties, ARRAY_LEN(vim25_alarm_properties));
    print_properties(out, "VirtualMachine", vim25_vm_properties, ARRAY_LEN(vim25_vm_properties));
    for (uint32_t i = 0; i < n; i++) {
        buf_add(out, STR("<objectSet>"));
        print_ref(out, "obj", refs[i]);
        buf_add(out, STR("<skip>false</skip></objectSet>"));
    }
    /* A task that has been forgotten meanwhile must not take the others along. */
    buf_add(out, STR("<reportMissingObjectsInResults>true</reportMissingObjectsInResults>"
                     "</specSet><options/>"));
    print_close(out, "RetrievePropertiesEx");
}

const char *vim25_power_call_name(enum vim25_power_call call)
{
    static const char *const names[] = {
        [VIM25_SHUTDOWN_GUEST] = "ShutdownGuest",
        [VIM25_POWER_OFF] = "PowerOffVM_Task",
        [VIM25_POWER_ON] = "PowerOnVM_Task",
    };
    return names[call];
}

void vim25_print_power_call(struct buf *out, enum vim25_power_call call, struct vim25_ref vm)
{
    print_open(out, vim25_power_call_name(call));
    print_ref(out, "_this", vm);
    print_close(out, vim25_power_call_name(call));
}

/* ── answers ───────────────────────────────────────────────────────────────────────────────── */

static enum vim25_fault fault_of(struct str name)
{
    static const struct {
        struct str name;
        enum vim25_fault fault;
    } faults[] = {
        { STR_INIT("NotAuthenticated"), VIM25_NOT_AUTHENTICATED },
        { STR_INIT("InvalidLogin"), VIM25_INVALID_LOGIN },
        { STR_INIT("NoPermission"), VIM25_NO_PERMISSION },
        { STR_INIT("ManagedObjectNotFound"), VIM25_OBJECT_GONE },
        { STR_INIT("ToolsUnavailable"), VIM25_TOOLS_UNAVAILABLE },
        { STR_INIT("InvalidPowerState"), VIM25_WRONG_POWER_STATE },
    };
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        if (str_eq(faults[i].name, name)) {
            return faults[i].fault;
        }
    }
    return VIM25_OTHER_FAULT;
}

/* Words of a stranger, for a line of text. */
static struct str fault_words(struct str text, struct arena *out)
{
    struct str words = arena_str(out, str_sub(text, 0, MIN(text.n, (size_t)VIM25_WORDS_MAX)));
    char *p = (char *)(uintptr_t)words.p;
    for (size_t i = 0; i < words.n; i++) {
        p[i] = (unsigned char)p[i] < 0x20 ? ' ' : p[i];
    }
    return str_trim(words);
}

/* <detail><InvalidLoginFault xsi:type="InvalidLogin"/></detail>; servers leave out one or the
 * other name. */
static void read_fault(const struct xml_node *fault, struct arena *out, struct vim25_answer *ret)
{
    const struct xml_node *detail = xml_child(fault, STR("detail"));
    const struct xml_node *what = detail == NULL ? NULL : detail->first;
    struct str name = xml_type(what);
    if (name.n == 0 && what != NULL) {
        (void)str_cut_suffix(what->name, STR("Fault"), &name);
    }
    struct str words = fault_words(xml_child_text(fault, STR("faultstring")), out);
    ret->fault = fault_of(name);
    name = fault_words(name.n > 0 ? name : STR("fault"), out);
    ret->fault_text = words.n == 0
                          ? name
                          : arena_printf(out, STR_FMT ": " STR_FMT, STR_ARG(name), STR_ARG(words));
}

int vim25_parse(struct str body, struct arena *out, struct vim25_answer *ret, struct err *err)
{
    const struct xml_node *root = NULL;
    int r = xml_parse(body, out, &root, err);
    if (r < 0) {
        return r;
    }
    const struct xml_node *content = xml_child(root, STR("Body"));
    const struct xml_node *first = content == NULL ? NULL : content->first;
    if (!str_eq(root->name, STR("Envelope")) || first == NULL) {
        return err_set(err, ERR_PROTO, "the answer is no SOAP envelope");
    }
    *ret = (struct vim25_answer){ .fault = VIM25_OK };
    if (str_eq(first->name, STR("Fault"))) {
        read_fault(first, out, ret);
    } else {
        ret->result = first;
    }
    return 0;
}

static bool read_ref(const struct xml_node *node, struct vim25_ref *ret)
{
    struct str type = xml_attribute(node, STR("type"));
    if (node == NULL || type.n == 0 || node->text.n == 0) {
        return false;
    }
    *ret = (struct vim25_ref){ .type = type, .id = node->text };
    return true;
}

int vim25_read_service(const struct vim25_answer *answer, struct vim25_service *ret,
                       struct err *err)
{
    const struct xml_node *content = xml_child(answer->result, STR("returnval"));
    struct vim25_service service = {
        .version = xml_child_text(xml_child(content, STR("about")), STR("apiVersion")),
    };
    if (!read_ref(xml_child(content, STR("rootFolder")), &service.root) ||
        !read_ref(xml_child(content, STR("propertyCollector")), &service.property_collector) ||
        !read_ref(xml_child(content, STR("viewManager")), &service.view_manager) ||
        !read_ref(xml_child(content, STR("sessionManager")), &service.session_manager)) {
        return err_set(err, ERR_PROTO, "the answer does not describe a vCenter");
    }
    *ret = service;
    return 0;
}

int vim25_read_ref(const struct vim25_answer *answer, struct vim25_ref *ret, struct err *err)
{
    return read_ref(xml_child(answer->result, STR("returnval")), ret)
               ? 0
               : err_set(err, ERR_PROTO, "the answer names no object");
}

static struct vim25_ref copy_ref(struct vim25_ref ref, struct arena *out)
{
    return (struct vim25_ref){ .type = arena_str(out, ref.type), .id = arena_str(out, ref.id) };
}

/* The references of a list: elements that are references themselves, or have one called `name`. */
static void read_refs(const struct xml_node *list, struct str name, struct arena *out,
                      struct vim25_ref **ret, uint32_t *ret_n)
{
    uint32_t n = 0;
    for (const struct xml_node *item = list->first; item != NULL; item = item->next) {
        n++;
    }
    *ret = ARENA_ARRAY(out, struct vim25_ref, n);
    *ret_n = 0;
    for (const struct xml_node *item = list->first; item != NULL; item = item->next) {
        struct vim25_ref ref;
        if (read_ref(name.n > 0 ? xml_child(item, name) : item, &ref)) {
            (*ret)[(*ret_n)++] = copy_ref(ref, out);
        }
    }
}

static void read_host_property(struct vim25_host *host, struct str name, const struct xml_node *val,
                               struct arena *out)
{
    if (str_eq(name, STR("name"))) {
        host->name = arena_str(out, val->text);
    } else if (str_eq(name, STR("config.product.version"))) {
        host->version = arena_str(out, val->text);
    } else if (str_eq(name, STR("runtime.inMaintenanceMode"))) {
        host->in_maintenance = str_eq(val->text, STR("true")) || str_eq(val->text, STR("1"));
        host->known = val->text.n > 0;
    } else if (str_eq(name, STR("recentTask"))) {
        read_refs(val, STR(""), out, &host->tasks, &host->task_n);
    } else if (str_eq(name, STR("triggeredAlarmState"))) {
        read_refs(val, STR("alarm"), out, &host->alarms, &host->alarm_n);
    }
}

static enum vim25_power read_power(struct str text)
{
    return str_eq(text, STR("poweredOn"))    ? VIM25_POWERED_ON
           : str_eq(text, STR("poweredOff")) ? VIM25_POWERED_OFF
           : str_eq(text, STR("suspended"))  ? VIM25_SUSPENDED
                                             : VIM25_POWER_UNKNOWN;
}

static void read_vm_property(struct vim25_vm *vm, struct str name, const struct xml_node *val,
                             struct arena *out)
{
    struct vim25_ref ref;
    if (str_eq(name, STR("name"))) {
        vm->name = arena_str(out, val->text);
    } else if (str_eq(name, STR("runtime.host")) && read_ref(val, &ref)) {
        vm->host = copy_ref(ref, out);
    } else if (str_eq(name, STR("runtime.powerState"))) {
        vm->power = read_power(val->text);
    } else if (str_eq(name, STR("guest.toolsRunningStatus"))) {
        vm->tools_absent = str_eq(val->text, STR("guestToolsNotRunning"));
    }
}

static void read_task_property(struct vim25_task *task, struct str name, const struct xml_node *val,
                               struct arena *out)
{
    if (str_eq(name, STR("info.name"))) {
        task->name = arena_str(out, val->text);
    } else if (str_eq(name, STR("info.state"))) {
        task->state = arena_str(out, val->text);
    } else if (str_eq(name, STR("info.error"))) {
        struct str type = xml_type(xml_child(val, STR("fault")));
        struct str words = xml_child_text(val, STR("localizedMessage"));
        task->error = fault_words(words.n > 0 ? words : type, out);
    }
}

static int read_object(const struct xml_node *object, struct arena *out,
                       struct vim25_objects *objects, struct err *err)
{
    struct vim25_ref ref;
    if (!read_ref(xml_child(object, STR("obj")), &ref)) {
        return err_set(err, ERR_PROTO, "an object of the answer has no name");
    }
    struct vim25_host host = { .ref = copy_ref(ref, out) };
    struct vim25_vm vm = { .ref = host.ref };
    struct vim25_task task = { .ref = host.ref };
    struct vim25_alarm alarm = { .ref = host.ref };
    bool is_host = str_eq(ref.type, STR("HostSystem"));
    bool is_vm = str_eq(ref.type, STR("VirtualMachine"));
    bool is_task = str_eq(ref.type, STR("Task"));
    for (const struct xml_node *p = object->first; p != NULL; p = p->next) {
        struct str name = xml_child_text(p, STR("name"));
        const struct xml_node *val = xml_child(p, STR("val"));
        if (!str_eq(p->name, STR("propSet")) || val == NULL) {
            continue;
        }
        if (is_host) {
            read_host_property(&host, name, val, out);
        } else if (is_vm) {
            read_vm_property(&vm, name, val, out);
        } else if (is_task) {
            read_task_property(&task, name, val, out);
        } else if (str_eq(name, STR("info.name"))) {
            alarm.name = arena_str(out, val->text);
        }
    }
    if (is_host) {
        ARENA_GROW(out, objects->hosts, objects->host_n, objects->host_cap);
        objects->hosts[objects->host_n++] = host;
    } else if (is_vm) {
        ARENA_GROW(out, objects->vms, objects->vm_n, objects->vm_cap);
        objects->vms[objects->vm_n++] = vm;
    } else if (is_task) {
        ARENA_GROW(out, objects->tasks, objects->task_n, objects->task_cap);
        objects->tasks[objects->task_n++] = task;
    } else if (str_eq(ref.type, STR("Alarm"))) {
        ARENA_GROW(out, objects->alarms, objects->alarm_n, objects->alarm_cap);
        objects->alarms[objects->alarm_n++] = alarm;
    }
    return 0;
}

int vim25_read_objects(const struct vim25_answer *answer, struct arena *out,
                       struct vim25_objects *objects, struct str *ret_token, struct err *err)
{
    const struct xml_node *result = xml_child(answer->result, STR("returnval"));
    struct str token = xml_child_text(result, STR("token"));
    for (const struct xml_node *o = result == NULL ? NULL : result->first; o != NULL; o = o->next) {
        if (!str_eq(o->name, STR("objects"))) {
            continue;
        }
        if (objects->host_n + objects->vm_n + objects->task_n + objects->alarm_n >=
            VIM25_OBJECTS_MAX) {
            return err_set(err, ERR_LIMIT, "the inventory has more than %u objects",
                           VIM25_OBJECTS_MAX);
        }
        int r = read_object(o, out, objects, err);
        if (r < 0) {
            return r;
        }
    }
    *ret_token = arena_str(out, token);
    return 0;
}
