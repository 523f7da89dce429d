/* The table of all plugins: keys, defaults, help. */
#include "profile/plugin_table.h"

/* clang-format off */
#define KEYS(table) .keys = (table), .key_n = ARRAY_LEN(table)

static const struct plugin_key affinity_keys[] = {
    { "minOperational", PLUGIN_INT, .initial = "0", .help = "pass when so many nodes are operational" },
};
static const struct plugin_key label_keys[] = {
    { "key", PLUGIN_TEXT, .required = true, .help = "the name to look for" },
    { "value", PLUGIN_TEXT, .help = "what it must hold; empty: anything" },
};
static const struct plugin_key cluster_semver_keys[] = {
    { "key", PLUGIN_TEXT, .required = true, .help = "the label that holds a version" },
    { "profileScoped", PLUGIN_BOOL, .initial = "false", .help = "look at nodes of the same profile only" },
};
static const struct plugin_key condition_keys[] = {
    { "type", PLUGIN_TEXT, .required = true, .help = "the condition's type, such as Ready" },
    { "status", PLUGIN_TEXT, .required = true, .help = "its status; quote \"True\"" },
};
static const struct plugin_key max_maintenance_keys[] = {
    { "max", PLUGIN_INT, .required = true, .help = "so many nodes may be in maintenance" },
    { "profile", PLUGIN_TEXT, .help = "count nodes with this profile only" },
    { "skipAfter", PLUGIN_DURATION, .initial = "0s", .help = "do not count nodes in maintenance for longer" },
    { "groupBy", PLUGIN_TEXTS, .help = "count nodes with the same values of these labels only" },
    { "groupLabel", PLUGIN_TEXT, .help = "deprecated: one more label of groupBy" },
};
static const struct plugin_key node_count_keys[] = {
    { "count", PLUGIN_INT, .required = true, .help = "the cluster has at least so many nodes" },
};
static const struct plugin_key prometheus_keys[] = {
    { "url", PLUGIN_TEXT, .required = true, .help = "where Prometheus is" },
    { "query", PLUGIN_TEXT, .help = "a query that yields one element" },
    { "expr", PLUGIN_TEXT, .help = "an expression over 'value'" },
};
static const struct plugin_key stagger_keys[] = {
    { "duration", PLUGIN_DURATION, .required = true, .help = "how long one node keeps others back" },
    { "leaseName", PLUGIN_TEXT, .required = true, .help = "the beginning of the leases' names" },
    { "leaseNamespace", PLUGIN_TEXT, .required = true, .help = "where the leases are" },
    { "parallel", PLUGIN_INT, .initial = "1", .help = "how many nodes may go at once" },
};
static const struct plugin_key time_window_keys[] = {
    { "start", PLUGIN_CLOCK, .required = true, .unless = "cron", .help = "when it opens, hh:mm" },
    { "end", PLUGIN_CLOCK, .required = true, .unless = "cron", .help = "when it closes, hh:mm" },
    { "weekdays", PLUGIN_WEEKDAYS, .required = true, .unless = "cron", .help = "on which days" },
    { "exclude", PLUGIN_DATES, .help = "days of the year on which it stays closed" },
    { "timeZone", PLUGIN_TEXT, .help = "whose clocks count; empty: UTC" },
    { "overnight", PLUGIN_BOOL, .initial = "false", .help = "'end' may be the next day's" },
    { "cron", PLUGIN_CRON, .help = "when it opens, instead of start, end and weekdays" },
    { "duration", PLUGIN_DURATION, .initial = "0s", .help = "how long it is open after 'cron'" },
};
static const struct plugin_key wait_keys[] = {
    { "duration", PLUGIN_SPAN, .required = true, .help = "how long the state has lasted" },
};
static const struct plugin_key wait_exclude_keys[] = {
    { "duration", PLUGIN_SPAN, .required = true, .help = "how long the state has lasted" },
    { "exclude", PLUGIN_WEEKDAYS, .required = true, .help = "weekdays that do not count" },
};

static const struct plugin_key kubernikus_count_keys[] = {
    { "cluster", PLUGIN_TEXT, .required = true, .help = "its name in Kubernikus" },
    { "cloudProviderSecret.name", PLUGIN_TEXT, .help = "the Secret with the credentials of OpenStack" },
    { "cloudProviderSecret.namespace", PLUGIN_TEXT,
      .help = "where it is; with both, the Secret is used instead of provider/cloudprovider.conf" },
    { "url", PLUGIN_TEXT, .help = "where Kubernikus is; empty: where the region's is" },
};
static const struct plugin_key check_hypervisor_keys[] = {
    { "evicted", PLUGIN_BOOL, .help = "no instance is left on it" },
    { "hypervisorId", PLUGIN_TEXT, .help = "its id in OpenStack" },
    { "hypervisorVersion", PLUGIN_TEXT, .help = "what it runs" },
    { "internalIp", PLUGIN_TEXT, .help = "its address" },
    { "libVirtVersion", PLUGIN_TEXT, .help = "the version of libvirt" },
    { "serviceId", PLUGIN_TEXT, .help = "the id of its compute service" },
    { "specHash", PLUGIN_TEXT, .help = "of the spec that is in force" },
};

static const struct plugin checks[] = {
    { .name = "affinity", KEYS(affinity_keys), .help = "lets nodes without affinity pods go first",
      .example = "{minOperational: 3}" },
    { .name = "anyLabel", KEYS(label_keys), .help = "any node of the cluster has the label",
      .example = "{key: rollout, value: go}" },
    { .name = "checkHypervisor", KEYS(check_hypervisor_keys),
      .help = "fields in the status of the node's Hypervisor have these values",
      .example = "{evicted: true}", .fields_of = "HypervisorStatus",
      .others = "aggregates:[]v1.Aggregate|allocation:map[string]resource.Quantity|"
                "capabilities:v1.Capabilities|capacity:map[string]resource.Quantity|cells:[]v1.Cell|"
                "conditions:[]v1.Condition|domainCapabilities:v1.DomainCapabilities|"
                "effectiveCapacity:map[string]resource.Quantity|instances:[]v1.Instance|"
                "numInstances:int|operatingSystem:v1.OperatingSystemStatus|traits:[]string|"
                "updateStatus:v1.HypervisorUpdateStatus" },
    { .name = "clusterSemver", KEYS(cluster_semver_keys), .help = "another node has a newer version",
      .example = "{key: version}" },
    { .name = "condition", KEYS(condition_keys), .help = "a condition of the node has the status",
      .example = "{type: Ready, status: \"True\"}" },
    { .name = "hasAnnotation", KEYS(label_keys), .help = "the node has the annotation",
      .example = "{key: reboot, value: now}" },
    { .name = "hasLabel", KEYS(label_keys), .help = "the node has the label",
      .example = "{key: pool, value: a}" },
    { .name = "hypervisorCondition", KEYS(condition_keys),
      .help = "a condition of the node's Hypervisor has the status",
      .example = "{type: Ready, status: \"True\"}" },
    { .name = "kubernikusCount", KEYS(kubernikus_count_keys),
      .help = "the cluster has as many nodes as its Kubernikus pools are to have",
      .example = "{cluster: mine, cloudProviderSecret: {name: cloudprovider, namespace: kube-system}}",
      .asks_outside = true },
    { .name = "maxMaintenance", KEYS(max_maintenance_keys), .help = "fewer nodes are in maintenance",
      .example = "{max: 1, groupBy: [zone]}" },
    { .name = "nodeCount", KEYS(node_count_keys), .help = "the cluster has enough nodes",
      .example = "{count: 5}" },
    { .name = "prometheusInstant", KEYS(prometheus_keys), .help = "a query of Prometheus holds",
      .example = "{url: http://prometheus, query: up, expr: value == 1}", .asks_outside = true },
    { .name = "stagger", KEYS(stagger_keys), .help = "nodes go one after the other",
      .example = "{duration: 10m, leaseName: stagger, leaseNamespace: default}",
      .takes_lease = true },
    { .name = "timeWindow", KEYS(time_window_keys), .help = "the time is right",
      .example = "{start: '22:00', end: '23:59', weekdays: [mon, tue]}" },
    { .name = "wait", KEYS(wait_keys), .help = "the state has lasted long enough",
      .example = "{duration: 30m}" },
    { .name = "waitExclude", KEYS(wait_exclude_keys), .help = "the same without some weekdays",
      .example = "{duration: 30m, exclude: [sat, sun]}" },
};

static const struct plugin_key mail_keys[] = {
    { "auth", PLUGIN_BOOL, .initial = "false", .help = "log in with user and password" },
    { "address", PLUGIN_TEXT, .required = true, .help = "host:port of the server" },
    { "from", PLUGIN_TEXT, .required = true, .help = "the sender" },
    { "to", PLUGIN_TEXTS, .required = true, .help = "the receivers" },
    { "subject", PLUGIN_TEXT, .required = true, .help = "the subject" },
    { "message", PLUGIN_TEMPLATE, .required = true, .help = "a template of the text" },
    { "identity", PLUGIN_TEXT, .help = "as whom to act, mostly empty" },
    { "user", PLUGIN_TEXT, .help = "who logs in" },
    { "password", PLUGIN_TEXT, .help = "the password" },
};
static const struct plugin_key slack_keys[] = {
    { "hook", PLUGIN_TEXT, .required = true, .help = "the address of the webhook" },
    { "channel", PLUGIN_TEXT, .required = true, .help = "the channel" },
    { "message", PLUGIN_TEMPLATE, .required = true, .help = "a template of the text" },
};
static const struct plugin_key slack_thread_keys[] = {
    { "token", PLUGIN_TEXT, .required = true, .help = "the token of the bot" },
    { "channel", PLUGIN_TEXT, .required = true, .help = "the channel" },
    { "title", PLUGIN_TEMPLATE, .required = true, .help = "a template of a thread's first text" },
    { "message", PLUGIN_TEMPLATE, .required = true, .help = "a template of the text" },
    { "leaseName", PLUGIN_TEXT, .required = true, .help = "the lease that holds the thread" },
    { "leaseNamespace", PLUGIN_TEXT, .required = true, .help = "where the lease is" },
    { "period", PLUGIN_DURATION, .required = true, .help = "how long a thread is used" },
    { "url", PLUGIN_TEXT, .initial = "https://slack.com/api/chat.postMessage", .help = "where to post" },
};
static const struct plugin_key webhook_keys[] = {
    { "url", PLUGIN_TEXT, .required = true, .help = "where to send it, http or https" },
    { "method", PLUGIN_TEXT, .initial = "POST", .help = "the method of the request" },
    { "body", PLUGIN_TEMPLATE,
      .initial = "{\"node\":{{printf \"%q\" .Node.Name}},\"profile\":{{printf \"%q\" .Profile}},"
                 "\"state\":{{printf \"%q\" .State}},\"inMaintenance\":{{.InMaintenance}},"
                 "\"lastTransition\":\"{{.LastTransition.Format \"2006-01-02T15:04:05Z07:00\"}}\""
                 "{{if .Reason}},\"reason\":{{printf \"%q\" .Reason}}{{end}}"
                 "{{if .Request}},\"request\":{{printf \"%q\" .Request}}{{end}}}",
      .help = "a template of the body" },
    { "contentType", PLUGIN_TEXT, .initial = "application/json", .help = "what the body is" },
    { "headers", PLUGIN_TEXTS, .help = "more headers, each 'Name: value'" },
    { "secret", PLUGIN_TEXT, .help = "signs id, time and body by HMAC-SHA256: webhook-signature" },
    { "timeout", PLUGIN_DURATION, .initial = "30s", .help = "how long an answer may take" },
};

static const struct plugin notifications[] = {
    { .name = "mail", KEYS(mail_keys), .help = "sends a mail",
      .example = "{address: 'mail:25', from: a@b, to: [c@d], subject: s, message: m}" },
    { .name = "slack", KEYS(slack_keys), .help = "posts to Slack",
      .example = "{hook: '${HOOK}', channel: '#ops', message: '{{ .Node.Name }}'}" },
    { .name = "slackThread", KEYS(slack_thread_keys), .help = "posts to Slack, in threads",
      .example = "{token: '${TOKEN}', channel: '#ops', title: t, message: m, "
                 "leaseName: l, leaseNamespace: n, period: 12h}" },
    { .name = "webhook", KEYS(webhook_keys), .help = "sends a request to any server; 2xx is success",
      .example = "{url: 'https://example.org/hook', secret: '${SECRET}'}" },
};

static const struct plugin_key alter_keys[] = {
    { "key", PLUGIN_TEXT, .required = true, .help = "the name" },
    { "value", PLUGIN_TEXT, .help = "what it will hold" },
    { "remove", PLUGIN_BOOL, .initial = "false", .help = "remove it instead" },
};
static const struct plugin_key finalizer_keys[] = {
    { "key", PLUGIN_TEXT, .required = true, .help = "the name" },
    { "remove", PLUGIN_BOOL, .initial = "false", .help = "remove it instead" },
};
static const struct plugin_key alter_hypervisor_keys[] = {
    { "createCertManagerCertificate", PLUGIN_BOOL, .help = "make a certificate with cert-manager" },
    { "evacuateOnReboot", PLUGIN_BOOL, .help = "move instances away before a reboot" },
    { "highAvailability", PLUGIN_BOOL, .help = "restart its instances elsewhere when it fails" },
    { "installCertificate", PLUGIN_BOOL, .help = "install the certificate" },
    { "lifecycleEnabled", PLUGIN_BOOL, .help = "its operator looks after it" },
    { "maintenance", PLUGIN_TEXT, .help = "empty, manual, auto, ha or termination" },
    { "maintenanceReason", PLUGIN_TEXT, .help = "why" },
    { "reboot", PLUGIN_BOOL, .help = "reboot it" },
    { "skipTests", PLUGIN_BOOL, .help = "do not test it before it takes instances again" },
    { "version", PLUGIN_TEXT, .help = "the version of its operating system" },
};
static const struct plugin_key eviction_keys[] = {
    { "action", PLUGIN_CHOICE, .required = true, .choices = "cordon|uncordon|drain", .help = "what to do" },
    { "deletionTimeout", PLUGIN_DURATION, .initial = "10m", .help = "how long a pod may take to go" },
    { "evictionTimeout", PLUGIN_DURATION, .initial = "10m", .help = "how long budgets may refuse" },
    { "forceEviction", PLUGIN_BOOL, .initial = "false", .help = "delete what does not go" },
    { "anyOwner", PLUGIN_BOOL, .initial = "false", .help = "uncordon also what others have cordoned" },
};

static const struct plugin triggers[] = {
    { .name = "alterAnnotation", KEYS(alter_keys), .help = "sets or removes an annotation",
      .example = "{key: reboot, value: now}" },
    { .name = "alterFinalizer", KEYS(finalizer_keys), .help = "adds or removes a finalizer",
      .example = "{key: example.org/hold}" },
    { .name = "alterHypervisor", KEYS(alter_hypervisor_keys),
      .help = "sets fields in the spec of the node's Hypervisor",
      .example = "{maintenance: auto}", .fields_of = "HypervisorSpec",
      .others = "aggregates:[]string|allowedProjects:[]string|customTraits:[]string|"
                "groups:[]v1.HypervisorGroup|overcommit:v1.Overcommit" },
    { .name = "alterLabel", KEYS(alter_keys), .help = "sets or removes a label",
      .example = "{key: reboot, remove: true}" },
    { .name = "eviction", KEYS(eviction_keys), .help = "cordons, drains or uncordons the node",
      .example = "{action: drain}" },
};

static const struct plugin_key periodic_keys[] = {
    { "interval", PLUGIN_DURATION, .initial = "1h", .help = "how often to remind" },
};
static const struct plugin_key scheduled_keys[] = {
    { "instant", PLUGIN_CLOCK, .required = true, .help = "at what time, hh:mm" },
    { "weekdays", PLUGIN_WEEKDAYS, .required = true, .help = "on which days" },
};
static const struct plugin_key oneshot_keys[] = {
    { "delay", PLUGIN_DURATION, .initial = "1m", .help = "how long after the transition" },
};

static const struct plugin schedules[] = {
    { .name = "periodic", KEYS(periodic_keys), .help = "on entry and then again and again",
      .example = "{interval: 1h}" },
    { .name = "scheduled", KEYS(scheduled_keys), .help = "at a time of some weekdays",
      .example = "{instant: '10:00', weekdays: [mon]}" },
    { .name = "oneshot", KEYS(oneshot_keys), .help = "once after a transition",
      .example = "{delay: 1m}" },
};
/* clang-format on */

const struct plugin_table plugin_tables[PLUGIN_KINDS] = {
    [PLUGIN_CHECK] = { .items = checks, .n = ARRAY_LEN(checks) },
    [PLUGIN_NOTIFY] = { .items = notifications, .n = ARRAY_LEN(notifications) },
    [PLUGIN_TRIGGER] = { .items = triggers, .n = ARRAY_LEN(triggers) },
};
const struct plugin_table plugin_schedules = { .items = schedules, .n = ARRAY_LEN(schedules) };
const char *const plugin_kind_names[PLUGIN_KINDS] = { "check", "notification", "trigger" };
const char *const plugin_kind_keys[PLUGIN_KINDS] = { "check", "notify", "trigger" };

const struct plugin *plugin_find(const struct plugin_table *table, struct str name)
{
    for (uint32_t i = 0; i < table->n; i++) {
        if (str_eq(str_from(table->items[i].name), name)) {
            return &table->items[i];
        }
    }
    return NULL;
}

const struct plugin_value *plugin_get(const struct plugin *p, const struct plugin_value *values,
                                      const char *key)
{
    uint32_t i = 0;
    while (i < p->key_n && !str_eq(str_from(p->keys[i].name), str_from(key))) {
        i++;
    }
    ASSERT(i < p->key_n);
    return &values[i];
}
