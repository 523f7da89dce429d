/*
 * swarm: random worlds with faults, from seeds; see docs/swarm.md.
 */
#include <getopt.h>
#include <time.h>

#include "tests/swarm/run.h"

struct swarm {
    uint64_t first;
    uint64_t seeds;
    enum story story;
    bool has_keep;
    struct str keep;
    mutations_t mutations;
    bool verbose;
    bool whole; /* a run that breaks a promise is not shrunk */
};

static const char *const mutation_names[MUTATION_COUNT] = {
    [MUTATION_SKIP_RV] = "skip-rv",
    [MUTATION_ACT_WITHOUT_LEASE] = "act-without-lease",
    [MUTATION_LOSE_DELETIONS] = "lose-deletions",
    [MUTATION_IGNORE_410] = "ignore-410",
    [MUTATION_STALE_OVERWRITE] = "stale-overwrite",
    [MUTATION_NO_RESYNC_AFTER_CUT] = "no-resync-after-cut",
    [MUTATION_LEASE_BY_WALL_CLOCK] = "lease-by-wall-clock",
    [MUTATION_LEASE_NEVER_STOPS] = "lease-never-stops",
    [MUTATION_DROP_FAILED_NODE] = "drop-failed-node",
    [MUTATION_RELEASE_OTHERS] = "release-others",
    [MUTATION_DATA_BYTES_WRONG] = "data-bytes-wrong",
    [MUTATION_GRANT_UNRECORDED] = "grant-unrecorded",
    [MUTATION_FORGET_GRANTS] = "forget-grants",
    [MUTATION_LEDGER_BY_FORCE] = "ledger-by-force",
    [MUTATION_DRAIN_AT_ONCE] = "drain-at-once",
    [MUTATION_PAST_BUDGET] = "past-budget",
    [MUTATION_UNCORDON_OTHERS] = "uncordon-others",
    [MUTATION_TWO_PROFILES] = "two-profiles",
    [MUTATION_WINDOW_IGNORED] = "window-ignored",
    [MUTATION_TELL_NOBODY] = "tell-nobody",
    [MUTATION_BAD_FILE_STOPS] = "bad-file-stops",
    [MUTATION_BOOKS_BY_FORCE] = "books-by-force",
    [MUTATION_RELEASE_EARLY] = "release-early",
    [MUTATION_NO_DOUBLE_CHECK] = "no-double-check",
    [MUTATION_NO_LOCK] = "no-lock",
    [MUTATION_PAUSE_IGNORED] = "pause-ignored",
    [MUTATION_TIMEOUT_EARLY] = "timeout-early",
    [MUTATION_STRIKE_BY_REQUEST] = "strike-by-request",
    [MUTATION_FORGED_ADOPTED] = "forged-adopted",
    [MUTATION_ORDER_IGNORED] = "order-ignored",
    [MUTATION_STALE_ANSWERS] = "stale-answers",
    [MUTATION_MESSAGES_REQUIRED] = "messages-required",
    [MUTATION_CORDON_LEFT] = "cordon-left",
    [MUTATION_HOOK_UNAPPROVED] = "hook-unapproved",
    [MUTATION_HOOK_AGAIN] = "hook-again",
    [MUTATION_HOOK_AWAY] = "hook-away",
    [MUTATION_APPROVED_BEFORE] = "approved-before",
    [MUTATION_PAIR_BY_NODE] = "pair-by-node",
    [MUTATION_MARKS_STAY] = "marks-stay",
    [MUTATION_NODE_BLIND] = "node-blind",
    [MUTATION_ALL_PAUSED_IGNORED] = "all-paused-ignored",
    [MUTATION_WRITE_PAUSED] = "write-paused",
    [MUTATION_LINK_STALE] = "link-stale",
    [MUTATION_LINK_DEAF] = "link-deaf",
    [MUTATION_MISSED_ONCE] = "missed-once",
    [MUTATION_MEMBERS_AT_ONCE] = "members-at-once",
    [MUTATION_HOLD_EARLY] = "hold-early",
    [MUTATION_RULES_LEFT_OUT] = "rules-left-out",
    [MUTATION_RULES_OF_ALL] = "rules-of-all",
    [MUTATION_RULES_ONCE] = "rules-once",
    [MUTATION_RULES_STAY] = "rules-stay",
    [MUTATION_HOST_UNAPPROVED] = "host-unapproved",
    [MUTATION_HOST_OF_OTHERS] = "host-of-others",
    [MUTATION_HOST_UNPROVISIONED] = "host-unprovisioned",
    [MUTATION_HOST_UNDRAINED] = "host-undrained",
    [MUTATION_HOST_UNOWNED] = "host-unowned",
    [MUTATION_HOST_PAUSED] = "host-paused",
    [MUTATION_HOST_BLIND] = "host-blind",
    [MUTATION_HOST_ON_AWAY] = "host-on-away",
    [MUTATION_HOST_NOT_AGAIN] = "host-not-again",
    [MUTATION_HOST_LEFT_OFF] = "host-left-off",
    [MUTATION_HOST_STRIPPED] = "host-stripped",
    [MUTATION_HOST_POWER_STALE] = "host-power-stale",
    [MUTATION_ESX_UNAPPROVED] = "esx-unapproved",
    [MUTATION_ESX_ONE_IS_ENOUGH] = "esx-one-is-enough",
    [MUTATION_ESX_BY_LABEL] = "esx-by-label",
    [MUTATION_ESX_UNDRAINED] = "esx-undrained",
    [MUTATION_ESX_UNMARKED] = "esx-unmarked",
    [MUTATION_ESX_UNNOTED] = "esx-unnoted",
    [MUTATION_ESX_ELSEWHERE] = "esx-elsewhere",
    [MUTATION_ESX_LET_GO] = "esx-let-go",
    [MUTATION_ESX_LEFT_OFF] = "esx-left-off",
    [MUTATION_ESX_ON_TOO_EARLY] = "esx-on-too-early",
    [MUTATION_ESX_UNRESERVED] = "esx-unreserved",
    [MUTATION_ESX_CORDON_OURS] = "esx-cordon-ours",
    [MUTATION_ESX_READ_LONG_AGO] = "esx-read-long-ago",
    [MUTATION_VISIT_ANY_TIME] = "visit-any-time",
    [MUTATION_VISITS_UNCOUNTED] = "visits-uncounted",
    [MUTATION_SPREAD_IGNORED] = "spread-ignored",
    [MUTATION_VISIT_UNGRANTED] = "visit-ungranted",
    [MUTATION_RUN_REPEATED] = "run-repeated",
    [MUTATION_JOB_UNRECORDED] = "job-unrecorded",
    [MUTATION_REBOOT_AGAIN] = "reboot-again",
    [MUTATION_VISIT_CORDON_LEFT] = "visit-cordon-left",
    [MUTATION_REQUEST_LEFT] = "request-left",
    [MUTATION_PLACE_LEFT] = "place-left",
};

/* Where a bug can show itself at all; elsewhere it would only cost time. STORIES: anywhere. */
static enum story mutation_story(enum mutation m)
{
    if (m >= MUTATION_HOOK_UNAPPROVED && m <= MUTATION_HOST_POWER_STALE) {
        return STORY_BRIDGE;
    }
    if (m >= MUTATION_ESX_UNAPPROVED && m <= MUTATION_ESX_READ_LONG_AGO) {
        return STORY_ESX;
    }
    switch (m) {
    case MUTATION_GRANT_UNRECORDED:
    case MUTATION_FORGET_GRANTS:
    case MUTATION_LEDGER_BY_FORCE:
    case MUTATION_STALE_OVERWRITE: /* replies that take their time are overtaken by events */
        return STORY_RELAY;
    case MUTATION_DRAIN_AT_ONCE:
    case MUTATION_PAST_BUDGET:
    case MUTATION_UNCORDON_OTHERS:
    case MUTATION_WINDOW_IGNORED:
    case MUTATION_ORDER_IGNORED:
    case MUTATION_CORDON_LEFT:
    case MUTATION_ALL_PAUSED_IGNORED:
        return STORY_DRAIN;
    case MUTATION_DROP_FAILED_NODE:
    case MUTATION_DATA_BYTES_WRONG:
        return STORY_STORM;
    case MUTATION_TWO_PROFILES:
    case MUTATION_TELL_NOBODY:
    case MUTATION_BAD_FILE_STOPS:
    case MUTATION_STALE_ANSWERS:
    case MUTATION_MESSAGES_REQUIRED:
        return STORY_SERVICE;
    case MUTATION_BOOKS_BY_FORCE:
    case MUTATION_RELEASE_EARLY:
    case MUTATION_NO_DOUBLE_CHECK:
    case MUTATION_NO_LOCK:
    case MUTATION_PAUSE_IGNORED:
    case MUTATION_TIMEOUT_EARLY:
    case MUTATION_STRIKE_BY_REQUEST:
    case MUTATION_FORGED_ADOPTED:
        return STORY_REQUESTS;
    case MUTATION_VISIT_ANY_TIME:
    case MUTATION_VISITS_UNCOUNTED:
    case MUTATION_SPREAD_IGNORED:
    case MUTATION_VISIT_UNGRANTED:
    case MUTATION_RUN_REPEATED:
    case MUTATION_JOB_UNRECORDED:
    case MUTATION_REBOOT_AGAIN:
    case MUTATION_VISIT_CORDON_LEFT:
    case MUTATION_REQUEST_LEFT:
    case MUTATION_PLACE_LEFT:
        return STORY_OPERATIONS;
    default:
        return STORY_COUNT;
    }
}

/* CPU time: the figure is a property of the code, not of what else the machine does. */
static double cpu_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Leaves actions out, one after the other, as long as the run still breaks a promise. */
static void shrink(struct scenario *scenario, mutations_t mutations,
                   uint32_t kept[SCENARIO_ACTIONS_MAX], struct sim_run_outcome *last)
{
    for (uint32_t i = scenario->n; i-- > 0;) {
        struct scenario shrunk = *scenario;
        memmove(&shrunk.actions[i], &shrunk.actions[i + 1],
                (shrunk.n - i - 1) * sizeof(shrunk.actions[0]));
        shrunk.n--;
        struct sim_run_outcome outcome;
        sim_run_scenario(&shrunk, mutations, false, &outcome);
        if (outcome.violated) {
            memmove(&kept[i], &kept[i + 1], (scenario->n - i - 1) * sizeof(kept[0]));
            *scenario = shrunk;
            *last = outcome;
        }
    }
}

static void report(const struct swarm *s, struct scenario *scenario, struct sim_run_outcome outcome)
{
    uint32_t kept[SCENARIO_ACTIONS_MAX];
    uint32_t before = scenario->n;
    for (uint32_t i = 0; i < scenario->n; i++) {
        kept[i] = i;
    }
    if (!s->whole) {
        shrink(scenario, s->mutations, kept, &outcome);
    }
    printf("seed %llu (%s, %u nodes, %u controllers) at %.3f s: %s\n",
           (unsigned long long)scenario->seed, story_name(scenario->story), scenario->nodes,
           scenario->processes, (double)outcome.at / 1e6, outcome.violation);
    printf("  %u of %u actions are enough:", scenario->n, before);
    for (uint32_t i = 0; i < scenario->n; i++) {
        printf(" %s", action_name(scenario->actions[i].kind));
    }
    printf("\n  again: build/swarm --first %llu --seeds 1 --story %s --keep '",
           (unsigned long long)scenario->seed, story_name(scenario->story));
    for (uint32_t i = 0; i < scenario->n; i++) {
        printf("%s%u", i == 0 ? "" : ",", kept[i]);
    }
    printf("' --verbose");
    for (unsigned m = 0; m < MUTATION_COUNT; m++) {
        if (mutated(s->mutations, (enum mutation)m)) {
            printf(" --mutation %s", mutation_names[m]);
        }
    }
    printf("\n");
}

/* True when the seed kept every promise. */
static bool run_seed(const struct swarm *s, uint64_t seed, uint64_t *hash, double *node_days)
{
    struct scenario scenario;
    struct err err = { 0 };
    scenario_make(&scenario, seed, s->story);
    if (s->has_keep && scenario_keep(&scenario, s->keep, &err) < 0) {
        (void)fprintf(stderr, "swarm: --keep: %s\n", err.msg);
        exit(2);
    }
    struct sim_run_outcome outcome;
    sim_run_scenario(&scenario, s->mutations, s->verbose, &outcome);
    *hash = (*hash ^ outcome.hash) * 0x100000001b3ULL;
    *node_days += (double)outcome.node_time / (double)DAYS(1);
    if (outcome.violated && s->has_keep) {
        printf("seed %llu at %.3f s: %s\n", (unsigned long long)seed, (double)outcome.at / 1e6,
               outcome.violation);
    } else if (outcome.violated) {
        report(s, &scenario, outcome);
    } else if (seed % 16 == 0) {
        struct sim_run_outcome again;
        sim_run_scenario(&scenario, s->mutations, false, &again);
        *node_days += (double)again.node_time / (double)DAYS(1);
        if (again.hash != outcome.hash) {
            printf("seed %llu: the same seed gave two hashes\n", (unsigned long long)seed);
            return false;
        }
    }
    return !outcome.violated;
}

static int run_seeds(const struct swarm *s)
{
    uint64_t violations = 0;
    uint64_t hash = 0xcbf29ce484222325ULL;
    double node_days = 0;
    double start = cpu_seconds();
    for (uint64_t i = 0; i < s->seeds; i++) {
        violations += !run_seed(s, s->first + i, &hash, &node_days);
    }
    double took = MAX(cpu_seconds() - start, 1e-9);
    printf("%llu seeds, %llu violations, hash %016llx, %.0f node-days/s\n",
           (unsigned long long)s->seeds, (unsigned long long)violations, (unsigned long long)hash,
           node_days / took);
    return violations > 0;
}

/* Whether the bug breaks a promise that is kept without it. */
static bool mutation_caught(const struct scenario *scenario, mutations_t mutations,
                            struct sim_run_outcome *ret)
{
    struct sim_run_outcome unmutated = { 0 };
    sim_run_scenario(scenario, mutations, false, ret);
    if (ret->violated) {
        sim_run_scenario(scenario, 0, false, &unmutated);
    }
    return ret->violated && !unmutated.violated;
}

/* Each known bug, alone, must break a promise within the seeds: all of them, or with a story those
 * that it is there to show. */
static int run_mutations(struct swarm *s)
{
    int missed = 0;
    int tried = 0;
    for (unsigned m = 0; m < MUTATION_COUNT; m++) {
        enum story story = mutation_story((enum mutation)m);
        bool caught = false;
        if (s->story != STORY_COUNT && story != STORY_COUNT && story != s->story) {
            continue;
        }
        tried++;
        for (uint64_t i = 0; i < s->seeds && !caught; i++) {
            struct scenario scenario;
            struct sim_run_outcome outcome;
            scenario_make(&scenario, s->first + i, s->story == STORY_COUNT ? story : s->story);
            caught = mutation_caught(&scenario, MUTATION_BIT(m), &outcome);
            if (caught) {
                printf("%-20s caught by seed %llu: %.90s\n", mutation_names[m],
                       (unsigned long long)scenario.seed, outcome.violation);
            }
        }
        if (!caught) {
            printf("%-20s NOT caught in %llu seeds\n", mutation_names[m],
                   (unsigned long long)s->seeds);
            missed++;
        }
    }
    printf("%d mutations, %d missed\n", tried, missed);
    return missed > 0;
}

static NORETURN void usage(int status)
{
    (void)fputs(
        "usage: swarm [--seeds N] [--first S] [--story NAME] [--keep I,J…] [--verbose] [--whole]\n"
        "             [--mutation NAME]… [--mutations]\n"
        "stories: storm churn election wire quiet service relay drain requests bridge\n"
        "         operations esx\n",
        status == 0 ? stdout : stderr);
    exit(status);
}

static uint64_t number_parse(const char *text)
{
    uint64_t value;
    if (!str_to_u64(str_from(text), &value)) {
        usage(2);
    }
    return value;
}

static mutations_t mutation_parse(const char *text)
{
    for (unsigned m = 0; m < MUTATION_COUNT; m++) {
        if (str_eq(str_from(mutation_names[m]), str_from(text))) {
            return MUTATION_BIT(m);
        }
    }
    usage(2);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        { "seeds", required_argument, NULL, 's' },    { "first", required_argument, NULL, 'f' },
        { "story", required_argument, NULL, 't' },    { "keep", required_argument, NULL, 'k' },
        { "mutation", required_argument, NULL, 'm' }, { "mutations", no_argument, NULL, 'M' },
        { "verbose", no_argument, NULL, 'v' },        { "whole", no_argument, NULL, 'w' },
        { "help", no_argument, NULL, 'h' },           { NULL, 0, NULL, 0 },
    };
    (void)setvbuf(stdout, NULL, _IOLBF, 0); /* a finding is shown when it is found */
    struct swarm s = { .seeds = 100, .story = STORY_COUNT };
    bool all_mutations = false;
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 's':
            s.seeds = number_parse(optarg);
            break;
        case 'f':
            s.first = number_parse(optarg);
            break;
        case 't':
            if (!story_find(str_from(optarg), &s.story)) {
                usage(2);
            }
            break;
        case 'k':
            s.has_keep = true;
            s.keep = str_from(optarg);
            break;
        case 'm':
            s.mutations |= mutation_parse(optarg);
            break;
        case 'M':
            all_mutations = true;
            break;
        case 'v':
            s.verbose = true;
            break;
        case 'w':
            s.whole = true;
            break;
        case 'h':
            usage(0);
        default:
            usage(2);
        }
    }
    return all_mutations ? run_mutations(&s) : run_seeds(&s);
}
