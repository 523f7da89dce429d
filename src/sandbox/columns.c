/*
 * The columns of the built-in kinds, with the descriptions that the real server gives them; made
 * by tools/record-sandbox, change them there.
 */
#include "sandbox/columns.h"

const struct column columns[] = {
    { "", "nodes", "Name", "string", "name", 0,
      "Name must be unique within a namespace. Is required when creating resources, "
      "although some resources may allow a client to request the generation of an "
      "appropriate name automatically. Name is primarily intended for creation "
      "idempotence and configuration definition. Cannot be updated. More info: "
      "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names" },
    { "", "nodes", "Status", "string", "", 0, "The status of the node" },
    { "", "nodes", "Roles", "string", "", 0, "The roles of the node" },
    { "", "nodes", "Age", "string", "", 0,
      "CreationTimestamp is a timestamp representing the server time when this object "
      "was created. It is not guaranteed to be set in happens-before order across "
      "separate operations. Clients may not set this value. It is represented in "
      "RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for "
      "lists. More info: "
      "https://git.k8s.io/community/contributors/devel/sig-architecture/"
      "api-conventions.md#metadata" },
    { "", "nodes", "Version", "string", "", 0, "Kubelet Version reported by the node." },
    { "", "nodes", "Internal-IP", "string", "", 1,
      "List of addresses reachable to the node. Queried from cloud provider, if "
      "available. More info: "
      "https://kubernetes.io/docs/reference/node/node-status/#addresses Note: This "
      "field is declared as mergeable, but the merge key is not sufficiently unique, "
      "which can cause data corruption when it is merged. Callers should instead use "
      "a full-replacement patch. See https://pr.k8s.io/79391 for an example. "
      "Consumers should assume that addresses can change during the lifetime of a "
      "Node. However, there are some exceptions where this may not be possible, such "
      "as Pods that inherit a Node's address in its own status or consumers of the "
      "downward API (status.hostIP)." },
    { "", "nodes", "External-IP", "string", "", 1,
      "List of addresses reachable to the node. Queried from cloud provider, if "
      "available. More info: "
      "https://kubernetes.io/docs/reference/node/node-status/#addresses Note: This "
      "field is declared as mergeable, but the merge key is not sufficiently unique, "
      "which can cause data corruption when it is merged. Callers should instead use "
      "a full-replacement patch. See https://pr.k8s.io/79391 for an example. "
      "Consumers should assume that addresses can change during the lifetime of a "
      "Node. However, there are some exceptions where this may not be possible, such "
      "as Pods that inherit a Node's address in its own status or consumers of the "
      "downward API (status.hostIP)." },
    { "", "nodes", "OS-Image", "string", "", 1,
      "OS Image reported by the node from /etc/os-release (e.g. Debian GNU/Linux 7 "
      "(wheezy))." },
    { "", "nodes", "Kernel-Version", "string", "", 1,
      "Kernel Version reported by the node from 'uname -r' (e.g. "
      "3.16.0-0.bpo.4-amd64)." },
    { "", "nodes", "Container-Runtime", "string", "", 1,
      "ContainerRuntime Version reported by the node through runtime remote API (e.g. "
      "containerd://1.4.2)." },
    { "", "pods", "Name", "string", "name", 0,
      "Name must be unique within a namespace. Is required when creating resources, "
      "although some resources may allow a client to request the generation of an "
      "appropriate name automatically. Name is primarily intended for creation "
      "idempotence and configuration definition. Cannot be updated. More info: "
      "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names" },
    { "", "pods", "Ready", "string", "", 0,
      "The aggregate readiness state of this pod for accepting traffic." },
    { "", "pods", "Status", "string", "", 0,
      "The aggregate status of the containers in this pod." },
    { "", "pods", "Restarts", "string", "", 0,
      "The number of times the containers in this pod have been restarted and when "
      "the last container in this pod has restarted." },
    { "", "pods", "Age", "string", "", 0,
      "CreationTimestamp is a timestamp representing the server time when this object "
      "was created. It is not guaranteed to be set in happens-before order across "
      "separate operations. Clients may not set this value. It is represented in "
      "RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for "
      "lists. More info: "
      "https://git.k8s.io/community/contributors/devel/sig-architecture/"
      "api-conventions.md#metadata" },
    { "", "pods", "IP", "string", "", 1,
      "podIP address allocated to the pod. Routable at least within the cluster. "
      "Empty if not yet allocated." },
    { "", "pods", "Node", "string", "", 1,
      "NodeName indicates in which node this pod is scheduled. If empty, this pod is "
      "a candidate for scheduling by the scheduler defined in schedulerName. Once "
      "this field is set, the kubelet for this node becomes responsible for the "
      "lifecycle of this pod. This field should not be used to express a desire for "
      "the pod to be scheduled on a specific node. "
      "https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#nodename" },
    { "", "pods", "Nominated Node", "string", "", 1,
      "nominatedNodeName is set only when this pod preempts other pods on the node, "
      "but it cannot be scheduled right away as preemption victims receive their "
      "graceful termination periods. This field does not guarantee that the pod will "
      "be scheduled on this node. Scheduler may decide to place the pod elsewhere if "
      "other nodes become available sooner. Scheduler may also decide to give the "
      "resources on this node to a higher priority pod that is created after "
      "preemption. As a result, this field may be different than PodSpec.nodeName "
      "when the pod is scheduled." },
    { "", "pods", "Readiness Gates", "string", "", 1,
      "If specified, all readiness gates will be evaluated for pod readiness. A pod "
      "is ready when all its containers are ready AND all conditions specified in the "
      "readiness gates have status equal to \"True\" More info: "
      "https://git.k8s.io/enhancements/keps/sig-network/580-pod-readiness-gates" },
    { "apps", "deployments", "Name", "string", "name", 0,
      "Name must be unique within a namespace. Is required when creating resources, "
      "although some resources may allow a client to request the generation of an "
      "appropriate name automatically. Name is primarily intended for creation "
      "idempotence and configuration definition. Cannot be updated. More info: "
      "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names" },
    { "apps", "deployments", "Ready", "string", "", 0, "Number of the pod with ready state" },
    { "apps", "deployments", "Up-to-date", "string", "", 0,
      "Total number of non-terminating pods targeted by this deployment that have the "
      "desired template spec." },
    { "apps", "deployments", "Available", "string", "", 0,
      "Total number of available non-terminating pods (ready for at least "
      "minReadySeconds) targeted by this deployment." },
    { "apps", "deployments", "Age", "string", "", 0,
      "CreationTimestamp is a timestamp representing the server time when this object "
      "was created. It is not guaranteed to be set in happens-before order across "
      "separate operations. Clients may not set this value. It is represented in "
      "RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for "
      "lists. More info: "
      "https://git.k8s.io/community/contributors/devel/sig-architecture/"
      "api-conventions.md#metadata" },
    { "apps", "deployments", "Containers", "string", "", 1,
      "Names of each container in the template." },
    { "apps", "deployments", "Images", "string", "", 1,
      "Images referenced by each container in the template." },
    { "apps", "deployments", "Selector", "string", "", 1,
      "Label selector for pods. Existing ReplicaSets whose pods are selected by this "
      "will be the ones affected by this deployment." },
    { "apps", "replicasets", "Name", "string", "name", 0,
      "Name must be unique within a namespace. Is required when creating resources, "
      "although some resources may allow a client to request the generation of an "
      "appropriate name automatically. Name is primarily intended for creation "
      "idempotence and configuration definition. Cannot be updated. More info: "
      "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names" },
    { "apps", "replicasets", "Desired", "integer", "", 0,
      "Replicas is the number of desired pods. This is a pointer to distinguish "
      "between explicit zero and unspecified. Defaults to 1. More info: "
      "https://kubernetes.io/docs/concepts/workloads/controllers/replicaset" },
    { "apps", "replicasets", "Current", "integer", "", 0,
      "Replicas is the most recently observed number of non-terminating pods. More "
      "info: https://kubernetes.io/docs/concepts/workloads/controllers/replicaset" },
    { "apps", "replicasets", "Ready", "integer", "", 0,
      "The number of non-terminating pods targeted by this ReplicaSet with a Ready "
      "Condition." },
    { "apps", "replicasets", "Age", "string", "", 0,
      "CreationTimestamp is a timestamp representing the server time when this object "
      "was created. It is not guaranteed to be set in happens-before order across "
      "separate operations. Clients may not set this value. It is represented in "
      "RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for "
      "lists. More info: "
      "https://git.k8s.io/community/contributors/devel/sig-architecture/"
      "api-conventions.md#metadata" },
    { "apps", "replicasets", "Containers", "string", "", 1,
      "Names of each container in the template." },
    { "apps", "replicasets", "Images", "string", "", 1,
      "Images referenced by each container in the template." },
    { "apps", "replicasets", "Selector", "string", "", 1,
      "Selector is a label query over pods that should match the replica count. If "
      "the selector is empty, it is defaulted to the labels present on the pod "
      "template. Label keys and values that must match in order to be controlled by "
      "this replica set. More info: "
      "https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors" },
    { "apps", "statefulsets", "Name", "string", "name", 0,
      "Name must be unique within a namespace. Is required when creating resources, "
      "although some resources may allow a client to request the generation of an "
      "appropriate name automatically. Name is primarily intended for creation "
      "idempotence and configuration definition. Cannot be updated. More info: "
      "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names" },
    { "apps", "statefulsets", "Ready", "string", "", 0, "Number of the pod with ready state" },
    { "apps", "statefulsets", "Age", "string", "", 0,
      "CreationTimestamp is a timestamp representing the server time when this object "
      "was created. It is not guaranteed to be set in happens-before order across "
      "separate operations. Clients may not set this value. It is represented in "
      "RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for "
      "lists. More info: "
      "https://git.k8s.io/community/contributors/devel/sig-architecture/"
      "api-conventions.md#metadata" },
    { "apps", "statefulsets", "Containers", "string", "", 1,
      "Names of each container in the template." },
    { "apps", "statefulsets", "Images", "string", "", 1,
      "Images referenced by each container in the template." },
    { "apps", "daemonsets", "Name", "string", "name", 0,
      "Name must be unique within a namespace. Is required when creating resources, "
      "although some resources may allow a client to request the generation of an "
      "appropriate name automatically. Name is primarily intended for creation "
      "idempotence and configuration definition. Cannot be updated. More info: "
      "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names" },
    { "apps", "daemonsets", "Desired", "integer", "", 0,
      "The total number of nodes that should be running the daemon pod (including "
      "nodes correctly running the daemon pod). More info: "
      "https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/" },
    { "apps", "daemonsets", "Current", "integer", "", 0,
      "The number of nodes that are running at least 1 daemon pod and are supposed to "
      "run the daemon pod. More info: "
      "https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/" },
    { "apps", "daemonsets", "Ready", "integer", "", 0,
      "The number of nodes that should be running the daemon pod and have one or more "
      "of the daemon pod running and ready." },
    { "apps", "daemonsets", "Up-to-date", "integer", "", 0,
      "The total number of nodes that are running updated daemon pod" },
    { "apps", "daemonsets", "Available", "integer", "", 0,
      "The number of nodes that should be running the daemon pod and have one or more "
      "of the daemon pod running and available (ready for at least "
      "spec.minReadySeconds)" },
    { "apps", "daemonsets", "Node Selector", "string", "", 0,
      "NodeSelector is a selector which must be true for the pod to fit on a node. "
      "Selector which must match a node's labels for the pod to be scheduled on that "
      "node. More info: "
      "https://kubernetes.io/docs/concepts/configuration/assign-pod-node/" },
    { "apps", "daemonsets", "Age", "string", "", 0,
      "CreationTimestamp is a timestamp representing the server time when this object "
      "was created. It is not guaranteed to be set in happens-before order across "
      "separate operations. Clients may not set this value. It is represented in "
      "RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for "
      "lists. More info: "
      "https://git.k8s.io/community/contributors/devel/sig-architecture/"
      "api-conventions.md#metadata" },
    { "apps", "daemonsets", "Containers", "string", "", 1,
      "Names of each container in the template." },
    { "apps", "daemonsets", "Images", "string", "", 1,
      "Images referenced by each container in the template." },
    { "apps", "daemonsets", "Selector", "string", "", 1,
      "A label query over pods that are managed by the daemon set. Must match in "
      "order to be controlled. If empty, defaulted to labels on Pod template. More "
      "info: "
      "https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors" },
    { "batch", "jobs", "Name", "string", "name", 0,
      "Name must be unique within a namespace. Is required when creating resources, "
      "although some resources may allow a client to request the generation of an "
      "appropriate name automatically. Name is primarily intended for creation "
      "idempotence and configuration definition. Cannot be updated. More info: "
      "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names" },
    { "batch", "jobs", "Status", "string", "", 0, "Status of the job." },
    { "batch", "jobs", "Completions", "string", "", 0,
      "The number of pods which reached phase Succeeded. The value increases "
      "monotonically for a given spec. However, it may decrease in reaction to scale "
      "down of elastic indexed jobs." },
    { "batch", "jobs", "Duration", "string", "", 0, "Time required to complete the job." },
    { "batch", "jobs", "Age", "string", "", 0,
      "CreationTimestamp is a timestamp representing the server time when this object "
      "was created. It is not guaranteed to be set in happens-before order across "
      "separate operations. Clients may not set this value. It is represented in "
      "RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for "
      "lists. More info: "
      "https://git.k8s.io/community/contributors/devel/sig-architecture/"
      "api-conventions.md#metadata" },
    { "batch", "jobs", "Containers", "string", "", 1, "Names of each container in the template." },
    { "batch", "jobs", "Images", "string", "", 1,
      "Images referenced by each container in the template." },
    { "batch", "jobs", "Selector", "string", "", 1,
      "A label query over pods that should match the pod count. Normally, the system "
      "sets this field for you. More info: "
      "https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors" },
    { "batch", "cronjobs", "Name", "string", "name", 0,
      "Name must be unique within a namespace. Is required when creating resources, "
      "although some resources may allow a client to request the generation of an "
      "appropriate name automatically. Name is primarily intended for creation "
      "idempotence and configuration definition. Cannot be updated. More info: "
      "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names" },
    { "batch", "cronjobs", "Schedule", "string", "", 0,
      "The schedule in Cron format, see https://en.wikipedia.org/wiki/Cron." },
    { "batch", "cronjobs", "Timezone", "string", "", 0,
      "The time zone name for the given schedule, see "
      "https://en.wikipedia.org/wiki/List_of_tz_database_time_zones. If not "
      "specified, this will default to the time zone of the kube-controller-manager "
      "process. The set of valid time zone names and the time zone offset is loaded "
      "from the system-wide time zone database by the API server during CronJob "
      "validation and the controller manager during execution. If no system-wide time "
      "zone database can be found a bundled version of the database is used instead. "
      "If the time zone name becomes invalid during the lifetime of a CronJob or due "
      "to a change in host configuration, the controller will stop creating new new "
      "Jobs and will create a system event with the reason UnknownTimeZone. More "
      "information can be found in "
      "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#time-zones" },
    { "batch", "cronjobs", "Suspend", "boolean", "", 0,
      "This flag tells the controller to suspend subsequent executions, it does not "
      "apply to already started executions.  Defaults to false." },
    { "batch", "cronjobs", "Active", "integer", "", 0,
      "A list of pointers to currently running jobs." },
    { "batch", "cronjobs", "Last Schedule", "string", "", 0,
      "Information when was the last time the job was successfully scheduled." },
    { "batch", "cronjobs", "Age", "string", "", 0,
      "CreationTimestamp is a timestamp representing the server time when this object "
      "was created. It is not guaranteed to be set in happens-before order across "
      "separate operations. Clients may not set this value. It is represented in "
      "RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for "
      "lists. More info: "
      "https://git.k8s.io/community/contributors/devel/sig-architecture/"
      "api-conventions.md#metadata" },
    { "batch", "cronjobs", "Containers", "string", "", 1,
      "Names of each container in the template." },
    { "batch", "cronjobs", "Images", "string", "", 1,
      "Images referenced by each container in the template." },
    { "batch", "cronjobs", "Selector", "string", "", 1,
      "A label query over pods that should match the pod count. Normally, the system "
      "sets this field for you. More info: "
      "https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors" },
    { "policy", "poddisruptionbudgets", "Name", "string", "name", 0,
      "Name must be unique within a namespace. Is required when creating resources, "
      "although some resources may allow a client to request the generation of an "
      "appropriate name automatically. Name is primarily intended for creation "
      "idempotence and configuration definition. Cannot be updated. More info: "
      "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names" },
    { "policy", "poddisruptionbudgets", "Min Available", "string", "", 0,
      "The minimum number of pods that must be available." },
    { "policy", "poddisruptionbudgets", "Max Unavailable", "string", "", 0,
      "The maximum number of pods that may be unavailable." },
    { "policy", "poddisruptionbudgets", "Allowed Disruptions", "integer", "", 0,
      "Calculated number of pods that may be disrupted at this time." },
    { "policy", "poddisruptionbudgets", "Age", "string", "", 0,
      "CreationTimestamp is a timestamp representing the server time when this object "
      "was created. It is not guaranteed to be set in happens-before order across "
      "separate operations. Clients may not set this value. It is represented in "
      "RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for "
      "lists. More info: "
      "https://git.k8s.io/community/contributors/devel/sig-architecture/"
      "api-conventions.md#metadata" },
    { "coordination.k8s.io", "leases", "Name", "string", "name", 0,
      "Name must be unique within a namespace. Is required when creating resources, "
      "although some resources may allow a client to request the generation of an "
      "appropriate name automatically. Name is primarily intended for creation "
      "idempotence and configuration definition. Cannot be updated. More info: "
      "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names" },
    { "coordination.k8s.io", "leases", "Holder", "string", "", 0,
      "holderIdentity contains the identity of the holder of a current lease. If "
      "Coordinated Leader Election is used, the holder identity must be equal to the "
      "elected LeaseCandidate.metadata.name field." },
    { "coordination.k8s.io", "leases", "Age", "string", "", 0,
      "CreationTimestamp is a timestamp representing the server time when this object "
      "was created. It is not guaranteed to be set in happens-before order across "
      "separate operations. Clients may not set this value. It is represented in "
      "RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for "
      "lists. More info: "
      "https://git.k8s.io/community/contributors/devel/sig-architecture/"
      "api-conventions.md#metadata" },
    { "", "events", "Last Seen", "string", "", 0,
      "The time at which the most recent occurrence of this event was recorded." },
    { "", "events", "Type", "string", "", 0,
      "Type of this event (Normal, Warning), new types could be added in the future" },
    { "", "events", "Reason", "string", "", 0,
      "This should be a short, machine understandable string that gives the reason "
      "for the transition into the object's current status." },
    { "", "events", "Object", "string", "", 0, "The object that this event is about." },
    { "", "events", "Subobject", "string", "", 1,
      "If referring to a piece of an object instead of an entire object, this string "
      "should contain a valid JSON/Go field access statement, such as "
      "desiredState.manifest.containers[2]. For example, if the object reference is "
      "to a container within a pod, this would take on a value like: "
      "\"spec.containers{name}\" (where \"name\" refers to the name of the container that "
      "triggered the event) or if no container name is specified \"spec.containers[2]\" "
      "(container with index 2 in this pod). This syntax is chosen only to have some "
      "well-defined way of referencing a part of an object." },
    { "", "events", "Source", "string", "", 1,
      "The component reporting this event. Should be a short machine understandable "
      "string." },
    { "", "events", "Message", "string", "", 0,
      "A human-readable description of the status of this operation." },
    { "", "events", "First Seen", "string", "", 1,
      "The time at which the event was first recorded. (Time of server receipt is in "
      "TypeMeta.)" },
    { "", "events", "Count", "string", "", 1, "The number of times this event has occurred." },
    { "", "events", "Name", "string", "name", 1,
      "Name must be unique within a namespace. Is required when creating resources, "
      "although some resources may allow a client to request the generation of an "
      "appropriate name automatically. Name is primarily intended for creation "
      "idempotence and configuration definition. Cannot be updated. More info: "
      "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names" },
    { "events.k8s.io", "events", "Last Seen", "string", "", 0,
      "The time at which the most recent occurrence of this event was recorded." },
    { "events.k8s.io", "events", "Type", "string", "", 0,
      "Type of this event (Normal, Warning), new types could be added in the future" },
    { "events.k8s.io", "events", "Reason", "string", "", 0,
      "This should be a short, machine understandable string that gives the reason "
      "for the transition into the object's current status." },
    { "events.k8s.io", "events", "Object", "string", "", 0,
      "The object that this event is about." },
    { "events.k8s.io", "events", "Subobject", "string", "", 1,
      "If referring to a piece of an object instead of an entire object, this string "
      "should contain a valid JSON/Go field access statement, such as "
      "desiredState.manifest.containers[2]. For example, if the object reference is "
      "to a container within a pod, this would take on a value like: "
      "\"spec.containers{name}\" (where \"name\" refers to the name of the container that "
      "triggered the event) or if no container name is specified \"spec.containers[2]\" "
      "(container with index 2 in this pod). This syntax is chosen only to have some "
      "well-defined way of referencing a part of an object." },
    { "events.k8s.io", "events", "Source", "string", "", 1,
      "The component reporting this event. Should be a short machine understandable "
      "string." },
    { "events.k8s.io", "events", "Message", "string", "", 0,
      "A human-readable description of the status of this operation." },
    { "events.k8s.io", "events", "First Seen", "string", "", 1,
      "The time at which the event was first recorded. (Time of server receipt is in "
      "TypeMeta.)" },
    { "events.k8s.io", "events", "Count", "string", "", 1,
      "The number of times this event has occurred." },
    { "events.k8s.io", "events", "Name", "string", "name", 1,
      "Name must be unique within a namespace. Is required when creating resources, "
      "although some resources may allow a client to request the generation of an "
      "appropriate name automatically. Name is primarily intended for creation "
      "idempotence and configuration definition. Cannot be updated. More info: "
      "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names" },
    { "", "namespaces", "Name", "string", "name", 0,
      "Name must be unique within a namespace. Is required when creating resources, "
      "although some resources may allow a client to request the generation of an "
      "appropriate name automatically. Name is primarily intended for creation "
      "idempotence and configuration definition. Cannot be updated. More info: "
      "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names" },
    { "", "namespaces", "Status", "string", "", 0, "The status of the namespace" },
    { "", "namespaces", "Age", "string", "", 0,
      "CreationTimestamp is a timestamp representing the server time when this object "
      "was created. It is not guaranteed to be set in happens-before order across "
      "separate operations. Clients may not set this value. It is represented in "
      "RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for "
      "lists. More info: "
      "https://git.k8s.io/community/contributors/devel/sig-architecture/"
      "api-conventions.md#metadata" },
    { "", "configmaps", "Name", "string", "name", 0,
      "Name must be unique within a namespace. Is required when creating resources, "
      "although some resources may allow a client to request the generation of an "
      "appropriate name automatically. Name is primarily intended for creation "
      "idempotence and configuration definition. Cannot be updated. More info: "
      "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names" },
    { "", "configmaps", "Data", "string", "", 0,
      "Data contains the configuration data. Each key must consist of alphanumeric "
      "characters, '-', '_' or '.'. Values with non-UTF-8 byte sequences must use the "
      "BinaryData field. The keys stored in Data must not overlap with the keys in "
      "the BinaryData field, this is enforced during validation process." },
    { "", "configmaps", "Age", "string", "", 0,
      "CreationTimestamp is a timestamp representing the server time when this object "
      "was created. It is not guaranteed to be set in happens-before order across "
      "separate operations. Clients may not set this value. It is represented in "
      "RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for "
      "lists. More info: "
      "https://git.k8s.io/community/contributors/devel/sig-architecture/"
      "api-conventions.md#metadata" },
    { "", "secrets", "Name", "string", "name", 0,
      "Name must be unique within a namespace. Is required when creating resources, "
      "although some resources may allow a client to request the generation of an "
      "appropriate name automatically. Name is primarily intended for creation "
      "idempotence and configuration definition. Cannot be updated. More info: "
      "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names" },
    { "", "secrets", "Type", "string", "", 0,
      "Used to facilitate programmatic handling of secret data. More info: "
      "https://kubernetes.io/docs/concepts/configuration/secret/#secret-types" },
    { "", "secrets", "Data", "string", "", 0,
      "Data contains the secret data. Each key must consist of alphanumeric "
      "characters, '-', '_' or '.'. The serialized form of the secret data is a "
      "base64 encoded string, representing the arbitrary (possibly non-string) data "
      "value here. Described in https://tools.ietf.org/html/rfc4648#section-4" },
    { "", "secrets", "Age", "string", "", 0,
      "CreationTimestamp is a timestamp representing the server time when this object "
      "was created. It is not guaranteed to be set in happens-before order across "
      "separate operations. Clients may not set this value. It is represented in "
      "RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for "
      "lists. More info: "
      "https://git.k8s.io/community/contributors/devel/sig-architecture/"
      "api-conventions.md#metadata" },
    { "", "serviceaccounts", "Name", "string", "name", 0,
      "Name must be unique within a namespace. Is required when creating resources, "
      "although some resources may allow a client to request the generation of an "
      "appropriate name automatically. Name is primarily intended for creation "
      "idempotence and configuration definition. Cannot be updated. More info: "
      "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names" },
    { "", "serviceaccounts", "Age", "string", "", 0,
      "CreationTimestamp is a timestamp representing the server time when this object "
      "was created. It is not guaranteed to be set in happens-before order across "
      "separate operations. Clients may not set this value. It is represented in "
      "RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for "
      "lists. More info: "
      "https://git.k8s.io/community/contributors/devel/sig-architecture/"
      "api-conventions.md#metadata" },
    { "storage.k8s.io", "volumeattachments", "Name", "string", "name", 0,
      "Name must be unique within a namespace. Is required when creating resources, "
      "although some resources may allow a client to request the generation of an "
      "appropriate name automatically. Name is primarily intended for creation "
      "idempotence and configuration definition. Cannot be updated. More info: "
      "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names" },
    { "storage.k8s.io", "volumeattachments", "Attacher", "string", "name", 0,
      "attacher indicates the name of the volume driver that MUST handle this "
      "request. This is the name returned by GetPluginName()." },
    { "storage.k8s.io", "volumeattachments", "PV", "string", "", 0,
      "persistentVolumeName represents the name of the persistent volume to attach." },
    { "storage.k8s.io", "volumeattachments", "Node", "string", "", 0,
      "nodeName represents the node that the volume should be attached to." },
    { "storage.k8s.io", "volumeattachments", "Attached", "boolean", "", 0,
      "attached indicates the volume is successfully attached. This field must only "
      "be set by the entity completing the attach operation, i.e. the "
      "external-attacher." },
    { "storage.k8s.io", "volumeattachments", "Age", "string", "", 0,
      "CreationTimestamp is a timestamp representing the server time when this object "
      "was created. It is not guaranteed to be set in happens-before order across "
      "separate operations. Clients may not set this value. It is represented in "
      "RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for "
      "lists. More info: "
      "https://git.k8s.io/community/contributors/devel/sig-architecture/"
      "api-conventions.md#metadata" },
    { "apiextensions.k8s.io", "customresourcedefinitions", "Name", "string", "name", 0,
      "Name must be unique within a namespace. Is required when creating resources, "
      "although some resources may allow a client to request the generation of an "
      "appropriate name automatically. Name is primarily intended for creation "
      "idempotence and configuration definition. Cannot be updated. More info: "
      "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names" },
    { "apiextensions.k8s.io", "customresourcedefinitions", "Created At", "date", "", 0,
      "CreationTimestamp is a timestamp representing the server time when this object "
      "was created. It is not guaranteed to be set in happens-before order across "
      "separate operations. Clients may not set this value. It is represented in "
      "RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for "
      "lists. More info: "
      "https://git.k8s.io/community/contributors/devel/sig-architecture/"
      "api-conventions.md#metadata" },
};
const uint32_t columns_n = ARRAY_LEN(columns);
