/*
 * vim25: the requests that a vCenter is sent, and what its answers say. No I/O.
 *
 * vim25 is the SOAP interface of vSphere, at /sdk of a vCenter. Objects are named by references, a
 * type and an id. Properties of many objects are read by one request to the property collector, in
 * pages. A change of an object is a task, whose state is a property of an object of its own.
 */
#pragma once

#include "format/xml.h"

#define VIM25_CONTENT_TYPE STR("text/xml; charset=\"utf-8\"")
/* The oldest version that all supported vCenters speak; newer ones answer as that one did. */
#define VIM25_ACTION STR("urn:vim25/6.0")
#define VIM25_PAGE_MAX 500u /* objects of a page: about 300 KiB */

struct vim25_ref {
    struct str type; /* "HostSystem" */
    struct str id;   /* "host-12" */
};

bool vim25_ref_eq(struct vim25_ref a, struct vim25_ref b);

/* ── requests ──────────────────────────────────────────────────────────────────────────────── */

/* The objects by which a vCenter is spoken to. */
struct vim25_service {
    struct vim25_ref root; /* folder */
    struct vim25_ref property_collector;
    struct vim25_ref view_manager;
    struct vim25_ref session_manager;
    struct str version; /* of the interface */
};

void vim25_print_service_content(struct buf *out);
void vim25_print_login(struct buf *out, const struct vim25_service *service, struct str user,
                       struct str password);
void vim25_print_logout(struct buf *out, const struct vim25_service *service);
/* A view of all hosts and virtual machines. */
void vim25_print_create_view(struct buf *out, const struct vim25_service *service);
/* What struct vim25_host and struct vim25_vm hold of all objects of the view: the first page. */
void vim25_print_inventory(struct buf *out, const struct vim25_service *service,
                           struct vim25_ref view);
void vim25_print_next_page(struct buf *out, const struct vim25_service *service, struct str token);
/* What struct vim25_task, struct vim25_alarm and struct vim25_vm hold of these objects. */
void vim25_print_objects(struct buf *out, const struct vim25_service *service,
                         const struct vim25_ref *refs, uint32_t n);

enum vim25_power_call {
    VIM25_SHUTDOWN_GUEST, /* asks the system of the machine to end; answers nothing */
    VIM25_POWER_OFF,      /* answers a task, as the next */
    VIM25_POWER_ON,
};
void vim25_print_power_call(struct buf *out, enum vim25_power_call call, struct vim25_ref vm);
const char *vim25_power_call_name(enum vim25_power_call call);

/* ── answers ───────────────────────────────────────────────────────────────────────────────── */

enum vim25_fault {
    VIM25_OK,
    VIM25_NOT_AUTHENTICATED, /* there is no session, or it has expired */
    VIM25_INVALID_LOGIN,     /* user or password is wrong, or the account is locked */
    VIM25_NO_PERMISSION,     /* the user may not do that */
    VIM25_OBJECT_GONE,       /* the object does not exist (any more) */
    VIM25_TOOLS_UNAVAILABLE, /* nobody in the machine could shut it down */
    VIM25_WRONG_POWER_STATE, /* the machine has the wanted power state already, or another one */
    VIM25_OTHER_FAULT,
};

struct vim25_answer {
    enum vim25_fault fault;
    struct str fault_text;         /* its name and the server's words */
    const struct xml_node *result; /* the element of the answer; NULL with a fault */
};

/* An answer that is none, whatever its status, is an error. Everything lives in `out`. */
NODISCARD
int vim25_parse(struct str body, struct arena *out, struct vim25_answer *ret, struct err *err);

NODISCARD
int vim25_read_service(const struct vim25_answer *answer, struct vim25_service *ret,
                       struct err *err);
/* The one object that the answer names: the view, or the task. */
NODISCARD
int vim25_read_ref(const struct vim25_answer *answer, struct vim25_ref *ret, struct err *err);

struct vim25_host {
    struct vim25_ref ref;
    struct str name;
    struct str version; /* of the product; empty = not told */
    bool known;         /* whether it is in maintenance is */
    bool in_maintenance;
    struct vim25_ref *tasks; /* recent ones */
    uint32_t task_n;
    struct vim25_ref *alarms; /* triggered ones */
    uint32_t alarm_n;
};

enum vim25_power { VIM25_POWER_UNKNOWN, VIM25_POWERED_ON, VIM25_POWERED_OFF, VIM25_SUSPENDED };

struct vim25_vm {
    struct vim25_ref ref;
    struct str name;
    struct vim25_ref host; /* it runs there; empty = not told */
    enum vim25_power power;
    bool tools_absent; /* nobody in it could shut it down */
};

struct vim25_task {
    struct vim25_ref ref;
    struct str name;  /* "EnterMaintenanceMode_Task" */
    struct str state; /* "queued", "running", "success", "error" */
    struct str error; /* why it failed, in words */
};

struct vim25_alarm {
    struct vim25_ref ref;
    struct str name;
};

/* Objects with properties, a page or more of them. */
struct vim25_objects {
    struct vim25_host *hosts;
    struct vim25_vm *vms;
    struct vim25_task *tasks;
    struct vim25_alarm *alarms;
    uint32_t host_n, host_cap;
    uint32_t vm_n, vm_cap;
    uint32_t task_n, task_cap;
    uint32_t alarm_n, alarm_cap;
};

/* Adds the objects of a page, copied into `out`. `*ret_token` asks for the next one; empty: there
 * is none. */
NODISCARD
int vim25_read_objects(const struct vim25_answer *answer, struct arena *out,
                       struct vim25_objects *objects, struct str *ret_token, struct err *err);
